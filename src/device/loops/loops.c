/* The device "loops": the kernels that GPUs get, interpreted on the host. It is slow and always there: what is wrong
 * here too is wrong in a lowering, what is wrong on a GPU alone is wrong in its renderer or driver. Its memory is the
 * CPU's. */
#include <stdlib.h>

#include "base/math.h"
#include "device/cpu/cpu.h"
#include "device/gpu/host_step.h"
#include "device/gpu/profile.h"

struct berth__program {
  berth_context *ctx;
  const berth_plan *plan;
  berth__recipe *recipe;
  void *room; /* for the interpreter */
  berth__host_steps *host;
  berth__watch *watch;
  berth__block *block;
  unsigned char *base;
  berth__observer observer; /* of the run that was submitted */
};

static void describe(const berth_context *ctx, uint32_t index, berth_device_info *out) {
  berth__cpu_device.describe(ctx, index, out);
  memcpy(out->description, "the kernels of GPUs, interpreted: for tests", 44);
}

static berth__limits limits(void) { return berth__gpu_limits("loops"); }

/* BERTH_LOOPS_SHARED=0: kernels as for devices that gain nothing from shared memory. */
static void profile(const berth__engine *engine, berth__profile *out) {
  const char *setting = getenv("BERTH_LOOPS_SHARED");
  (void)engine;
  *out = *berth__profile_named(setting == NULL || strcmp(setting, "0") != 0 ? "generic" : "cpu");
}

static void program_destroy(berth__program *program) {
  if (program == NULL) return;
  berth__watch_destroy(program->watch);
  berth__host_steps_destroy(program->host);
  berth__recipe_destroy(program->recipe);
  berth__free(program->ctx, program->room);
  berth__free(program->ctx, program);
}

static berth_status build(berth__program *program, bool checked, berth_error *err) {
  uint64_t room = 0;
  BERTH__TRY(berth__recipe_create(program->plan, &program->recipe, err));
  for (size_t i = 0; i < program->recipe->n_kernels; i++) {
    const uint64_t needed = berth__kernel_room(program->recipe->kernels[i]);
    if (needed > room) room = needed;
  }
  program->room = berth__alloc_u64(program->ctx, room + 1);
  if (program->room == NULL) return berth__fail_nomem(err, "a program");
  BERTH__TRY(berth__host_steps_create(program->recipe, &program->host, err));
  return checked ? berth__watch_create(program->plan, &program->watch, err) : BERTH_OK;
}

static berth_status program_create(berth__engine *engine, const berth_plan *plan, bool checked, berth__program **out,
                                   berth_error *err) {
  *out = NULL;
  berth__program *program = berth__alloc_zero(engine->ctx, sizeof *program);
  if (program == NULL) return berth__fail_nomem(err, "a program");
  program->ctx = engine->ctx;
  program->plan = plan;
  berth_status status = build(program, checked, err);
  if (status != BERTH_OK) {
    program_destroy(program);
    return status;
  }
  *out = program;
  return BERTH_OK;
}

static berth_status program_bind(berth__program *program, berth__block *block, const void *const *outside,
                                 berth_error *err) {
  (void)err;
  berth__host_steps_bind(program->host, outside);
  program->block = block;
  program->base = berth__cpu_host(block);
  return BERTH_OK;
}

static berth_status run_dispatch(const berth__program *program, const berth__dispatch *dispatch, berth_error *err) {
  if (dispatch->kernel == BERTH__ON_HOST)
    return berth__host_steps_run(program->host, dispatch->step, &berth__loops_device, program->block, err);
  const berth__kernel *kernel = program->recipe->kernels[dispatch->kernel];
  berth__kernel_memory memory[BERTH__KERNEL_BUFFERS];
  for (uint32_t i = 0; i < kernel->n_buffers; i++) {
    const berth__span *span = &dispatch->spans[i];
    const uint64_t element = kernel->buffers[i].storage == BERTH__STORE_F16 ? 2 : 4;
    memory[i] = (berth__kernel_memory){(uint32_t *)(void *)(program->base + span->at), span->size / element};
  }
  berth_status status = berth__kernel_interpret(kernel, memory, program->room, err);
  if (status == BERTH_OK) return status;
  const berth_graph *graph = program->plan->graph;
  const berth__node *node = &graph->nodes[program->plan->order[dispatch->step]];
  return berth__fail_within(err, status, "node '%s' (%s)", graph->values[node->out[0]].name, node->op->name);
}

/* All kernels of one step, and what is around them. The host sees the elements only as the device holds them, so the
 * observer gets shapes alone. */
static berth_status run_step(berth__program *program, size_t begin, size_t end, const berth__observer *observer,
                             berth_error *err) {
  const berth__recipe *recipe = program->recipe;
  const uint32_t step = recipe->dispatches[begin].step;
  const double start = berth__now_ms();
  if (program->watch != NULL) berth__watch_before(program->watch, step);
  for (size_t i = begin; i < end; i++) BERTH__TRY(run_dispatch(program, &recipe->dispatches[i], err));
  if (program->watch != NULL) BERTH__TRY(berth__watch_after(program->watch, step, err));
  if (observer->call != NULL)
    observer->call(observer->user, step, program->plan->order[step], NULL, 0, berth__now_ms() - start);
  return BERTH_OK;
}

static berth_status run_range(berth__program *program, size_t begin, size_t end, const berth__observer *observer,
                              berth_error *err) {
  const berth__dispatch *dispatches = program->recipe->dispatches;
  berth_status status = BERTH_OK;
  if (program->watch != NULL) berth__watch_start(program->watch, program->base);
  while (begin < end && status == BERTH_OK) {
    size_t next = begin + 1;
    while (next < end && dispatches[next].step == dispatches[begin].step) next++;
    status = run_step(program, begin, next, observer, err);
    begin = next;
  }
  if (program->watch != NULL) berth__watch_stop(program->watch);
  return status;
}

static berth_status prepare(berth__program *program, const berth__observer *observer, berth_error *err) {
  return run_range(program, 0, program->recipe->n_prelude, observer, err);
}

static berth_status submit(berth__program *program, const berth__observer *observer, berth_error *err) {
  (void)err;
  program->observer = *observer;
  return BERTH_OK;
}

static berth_status wait_for(berth__program *program, berth_error *err) {
  return run_range(program, program->recipe->n_prelude, program->recipe->n_dispatches, &program->observer, err);
}

/* The CPU's threads are not needed. */
static berth_status open_loops(berth_context *ctx, const char *which, uint32_t n_threads, berth__engine **out,
                               berth_error *err) {
  (void)n_threads;
  return berth__cpu_device.open(ctx, which, 1, out, err);
}

static void close_loops(berth__engine *engine) { berth__cpu_device.close(engine); }

const berth__device berth__loops_device = {
    .name = "loops",
    .describe = describe,
    .limits = limits,
    .profile = profile,
    .open = open_loops,
    .close = close_loops,
    .block_create = berth__cpu_block_create,
    .block_destroy = berth__cpu_block_destroy,
    .write = berth__cpu_write,
    .read = berth__cpu_read,
    .copy = berth__cpu_copy,
    .fill = berth__cpu_fill,
    .host = berth__cpu_host,
    .program_create = program_create,
    .program_destroy = program_destroy,
    .program_bind = program_bind,
    .prepare = prepare,
    .submit = submit,
    .wait = wait_for,
};
