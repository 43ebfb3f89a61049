/* The program: made once, bound to a block, recorded and submitted at every run. */
#include "device/webgpu/program.h"

#include "base/thread.h"
#include "loop/render.h"

static const char running[] = "running a program";

/* ---- Making and freeing ---- */

static berth_status build(berth__program *program, bool checked, berth_error *err) {
  BERTH__TRY(berth__recipe_create(program->plan, &program->recipe, err));
  BERTH__TRY(berth__host_steps_create(program->recipe, &program->host, err));
  if (checked) {
    BERTH__TRY(berth__watch_create(program->plan, &program->watch, err));
    program->shadow = berth__alloc_u64(program->ctx, program->plan->info.arena_size);
    if (program->shadow == NULL) return berth__fail_nomem(err, "checked mode");
  }
  BERTH__TRY(berth__webgpu_need_staging(program->engine, err));
  BERTH__TRY(berth__webgpu_make_bindings(program, err));
  return berth__webgpu_make_pipelines(program, err);
}

berth_status berth__webgpu_program_create(berth__engine *engine, const berth_plan *plan, bool checked,
                                          berth__program **out, berth_error *err) {
  *out = NULL;
  BERTH__TRY(berth__webgpu_alive(engine, err));
  berth__program *program = berth__alloc_zero(engine->ctx, sizeof *program);
  if (program == NULL) return berth__fail_nomem(err, "a program");
  program->ctx = engine->ctx;
  program->engine = engine;
  program->plan = plan;
  program->next = engine->programs;
  engine->programs = program;
  berth_status status = build(program, checked, err);
  if (status != BERTH_OK) {
    berth__webgpu_program_destroy(program);
    return status;
  }
  berth__log(program->ctx, 0, "webgpu: a program of %zu dispatches of %zu kernels, %zu pipelines%s",
             program->recipe->n_dispatches, program->recipe->n_kernels, program->n_pipelines,
             program->windows ? ", in windows" : "");
  *out = program;
  return BERTH_OK;
}

void berth__webgpu_unbind(berth__engine *engine, const berth__block *block) {
  for (berth__program *program = engine->programs; program != NULL; program = program->next)
    if (program->bound == block->number) program->bound = 0;
}

void berth__webgpu_program_destroy(berth__program *program) {
  if (program == NULL) return;
  berth__program **link = &program->engine->programs;
  while (*link != program) link = &(*link)->next;
  *link = program->next;
  berth__webgpu_free_pipelines(program);
  berth__webgpu_free_bindings(program);
  berth__watch_destroy(program->watch);
  berth__host_steps_destroy(program->host);
  berth__recipe_destroy(program->recipe);
  berth__free(program->ctx, program->shadow);
  berth__free(program->ctx, program);
}

berth_status berth__webgpu_program_bind(berth__program *program, berth__block *block, const void *const *outside,
                                        berth_error *err) {
  berth__host_steps_bind(program->host, outside); /* nothing else reads it: the recipe has seen to that */
  if (program->bound == block->number) return BERTH_OK;
  BERTH__TRY(berth__webgpu_alive(program->engine, err));
  program->bound = 0;
  program->block = block;
  BERTH__TRY(berth__webgpu_bind_groups(program, err));
  program->bound = block->number;
  return BERTH_OK;
}

/* ---- Running ---- */

static void record_dispatch(const berth__program *program, berth__wgpu pass, size_t i) {
  const berth__wgpu_calls *gpu = program->engine->gpu;
  const uint64_t n_groups = program->recipe->kernels[program->recipe->dispatches[i].kernel]->n_groups;
  const berth__wgpu group = program->groups[program->n_groups > 1 ? i : 0];
  const uint32_t begins = (uint32_t)i * program->stride;
  gpu->ComputePassEncoderSetPipeline(pass, program->pipelines[program->pipeline_of[i]].handle);
  gpu->ComputePassEncoderSetBindGroup(pass, 0, group, program->engine->binds_each ? 0 : 1, &begins);
  gpu->ComputePassEncoderDispatchWorkgroups(pass, berth__grid_columns(n_groups), berth__grid_rows(n_groups), 1);
}

static void record_pass(const berth__program *program, berth__wgpu pass, size_t begin, size_t end) {
  for (size_t i = begin; i < end; i++) record_dispatch(program, pass, i);
  berth__webgpu_end_pass(program->engine, pass);
}

/* The end is seen by a word that is copied behind it. */
static berth_status run_dispatches(const berth__program *program, size_t begin, size_t end, berth_error *err) {
  berth__engine *engine = program->engine;
  const berth__wgpu encoder = berth__webgpu_record(engine);
  record_pass(program, berth__webgpu_begin_pass(engine, encoder, NULL), begin, end);
  engine->gpu->CommandEncoderCopyBufferToBuffer(encoder, program->block->buffer, 0, engine->staging, 0, 4);
  berth__webgpu_submit(engine, encoder);
  return berth__webgpu_fetch(engine, 0, NULL, 0, running, err);
}

static void tell(const berth__program *program, const berth__observer *observer, size_t dispatch, double ms) {
  const uint32_t step = program->recipe->dispatches[dispatch].step;
  observer->call(observer->user, step, program->plan->order[step], NULL, 0, ms);
}

/* Behind the dispatches of the step that `i` belongs to. */
static size_t end_of_step(const berth__program *program, size_t i, size_t end) {
  const uint32_t step = program->recipe->dispatches[i].step;
  while (i < end && program->recipe->dispatches[i].step == step) i++;
  return i;
}

/* The end is seen by the times, which are copied behind it. */
static berth_status run_timed(const berth__program *program, size_t begin, size_t end, const berth__observer *observer,
                              berth_error *err) {
  berth__engine *engine = program->engine;
  uint64_t ticks[2 * BERTH__WEBGPU_TIMED];
  uint32_t n = 0;
  const berth__wgpu encoder = berth__webgpu_record(engine);
  for (size_t i = begin, next; i < end; i = next) {
    next = end_of_step(program, i, end);
    record_pass(program, berth__webgpu_begin_timed(engine, encoder, n++), i, next);
  }
  const uint64_t size = berth__webgpu_fetch_times(engine, encoder, n);
  berth__webgpu_submit(engine, encoder);
  BERTH__TRY(berth__webgpu_fetch(engine, 0, ticks, size, running, err));
  n = 0;
  for (size_t i = begin; i < end; i = end_of_step(program, i, end))
    tell(program, observer, i, berth__webgpu_time_of(ticks, n++));
  return BERTH_OK;
}

/* Where the device has no clock, the host's holds one submission and the wait for it. */
static berth_status run_part(const berth__program *program, size_t begin, size_t end, const berth__observer *observer,
                             berth_error *err) {
  const berth__dispatch *d = &program->recipe->dispatches[begin];
  const bool is_on_host = d->kernel == BERTH__ON_HOST;
  const double start = berth__now_ms();
  if (observer->call != NULL && program->engine->times != NULL && !is_on_host)
    return run_timed(program, begin, end, observer, err);
  BERTH__TRY(is_on_host ? berth__host_steps_run(program->host, d->step, &berth__webgpu_device, program->block, err)
                        : run_dispatches(program, begin, end, err));
  if (observer->call != NULL) tell(program, observer, begin, berth__now_ms() - start);
  return BERTH_OK;
}

/* Checked: what is around a step is looked at, by way of the shadow. */
static berth_status run_watched(const berth__program *program, size_t begin, size_t end,
                                const berth__observer *observer, berth_error *err) {
  const uint64_t size = program->plan->info.arena_size;
  const uint32_t step = program->recipe->dispatches[begin].step;
  BERTH__TRY(berth__webgpu_read(program->block, 0, program->shadow, size, err));
  berth__watch_before(program->watch, step);
  berth__watch_stop(program->watch); /* whole arenas are copied here: nothing may be poisoned */
  BERTH__TRY(berth__webgpu_write(program->block, 0, program->shadow, size, err));
  BERTH__TRY(run_part(program, begin, end, observer, err));
  BERTH__TRY(berth__webgpu_read(program->block, 0, program->shadow, size, err));
  return berth__watch_after(program->watch, step, err);
}

/* How many steps may be in one submission. */
static size_t most_steps(const berth__program *program, const berth__observer *observer) {
  if (program->watch != NULL) return 1;
  if (observer->call == NULL) return SIZE_MAX;
  return program->engine->times != NULL ? BERTH__WEBGPU_TIMED : 1;
}

/* What follows `begin` in the same submission: up to a step on the host. */
static size_t end_of_part(const berth__program *program, size_t begin, size_t end, size_t n_steps) {
  const berth__dispatch *d = program->recipe->dispatches;
  size_t i = end_of_step(program, begin, end);
  if (d[begin].kernel == BERTH__ON_HOST) return i;
  for (size_t n = 1; n < n_steps && i < end && d[i].kernel != BERTH__ON_HOST; n++) i = end_of_step(program, i, end);
  return i;
}

static berth_status run_all(const berth__program *program, size_t begin, size_t end, const berth__observer *observer,
                            berth_error *err) {
  const size_t n_steps = most_steps(program, observer);
  BERTH__TRY(berth__webgpu_alive(program->engine, err));
  if (program->bound == 0)
    return berth__fail(err, BERTH_INTERNAL,
                       "the arena that this program was made for is gone, and it could not be made for another");
  if (program->watch != NULL) berth__watch_start(program->watch, program->shadow);
  for (size_t i = begin, next; i < end; i = next) {
    next = end_of_part(program, i, end, n_steps);
    BERTH__TRY(program->watch != NULL ? run_watched(program, i, next, observer, err)
                                      : run_part(program, i, next, observer, err));
  }
  return BERTH_OK;
}

berth_status berth__webgpu_prepare(berth__program *program, const berth__observer *observer, berth_error *err) {
  return run_all(program, 0, program->recipe->n_prelude, observer, err);
}

berth_status berth__webgpu_start(berth__program *program, const berth__observer *observer, berth_error *err) {
  program->observer = *observer;
  return berth__webgpu_alive(program->engine, err);
}

berth_status berth__webgpu_end(berth__program *program, berth_error *err) {
  return run_all(program, program->recipe->n_prelude, program->recipe->n_dispatches, &program->observer, err);
}
