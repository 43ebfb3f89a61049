/* The device "interp": interprets GPU kernels on the host. It is slow and always available: an error that occurs here
 * too is in a lowering, one that occurs only on a GPU is in its renderer or driver. Its memory is the CPU's, accessed
 * by calls that tests can make fail like a driver's. */
#include "device/interp/interp.h"

#include "device/gpu/driver.h"
#include "device/gpu/profile.h"

struct berth__engine {
  berth__gpu_engine core;
  berth__engine *host; /* the CPU's engine, a different struct: only passed on */
  uint64_t n_calls, fails_at;
  berth_status fails_with;
  bool is_lost;
};

struct berth__block {
  berth__engine *engine;
  berth__block *host; /* the CPU's block, like above */
};

struct berth__gpu_code {
  berth__engine *engine;
  const berth__recipe *recipe;
  void *room; /* for the interpreter */
};

struct berth__gpu_binding {
  berth__gpu_code *code;
  unsigned char *base;
  berth__gpu_part part; /* what was submitted: it runs when it is waited for */
};

/* ---- Failing calls ---- */

uint64_t berth__interp_calls(const berth__engine *engine) { return engine->n_calls; }

void berth__interp_fail_after(berth__engine *engine, uint64_t n, berth_status status) {
  engine->fails_at = engine->n_calls + n + 1;
  engine->fails_with = status;
}

static berth_status alive(const berth__engine *engine, berth_error *err) {
  return engine->is_lost ? berth__fail(err, BERTH_DEVICE_LOST, "the device 'interp' was lost") : BERTH_OK;
}

static berth_status count_call(berth__engine *engine, berth_error *err) {
  BERTH__TRY(alive(engine, err));
  if (++engine->n_calls != engine->fails_at) return BERTH_OK;
  engine->is_lost = engine->fails_with == BERTH_DEVICE_LOST;
  return berth__fail(err, engine->fails_with, "the device 'interp' was told to fail");
}

/* ---- The engine ---- */

static void interp_describe(const berth_context *ctx, uint32_t index, berth_device_info *out) {
  berth__cpu_device.describe(ctx, index, out);
  memcpy(out->description, "the kernels of GPUs, interpreted: for tests", 44);
}

static berth__limits interp_limits(void) { return berth__gpu_limits("interp"); }

static void close_interp(berth__engine *engine) {
  if (engine == NULL) return;
  berth__cpu_device.close(engine->host);
  berth__gpu_end(engine);
  berth__free(engine->core.ctx, engine);
}

static const berth__gpu_driver driver;

/* Without shared memory: kernels as for devices that gain nothing from it. */
static berth_status open_interp(berth_context *ctx, const char *which, uint32_t n_threads, berth__engine **out,
                                berth_error *err) {
  *out = NULL;
  berth__engine *engine = berth__alloc_zero(ctx, sizeof *engine);
  if (engine == NULL) return berth__fail_nomem(err, "the device 'interp'");
  berth__gpu_start(engine, ctx, &driver, n_threads);
  engine->core.profile = *berth__profile_named(ctx->options.loops_unshared ? "cpu" : "generic");
  const berth_status status = berth__cpu_device.open(ctx, which, 1, &engine->host, err);
  if (status != BERTH_OK) {
    close_interp(engine);
    return status;
  }
  *out = engine;
  return BERTH_OK;
}

/* ---- Memory ---- */

static berth_status block_create(berth__engine *engine, uint64_t size, uint64_t align, void *host, berth__block **out,
                                 berth_error *err) {
  *out = NULL;
  BERTH__TRY(count_call(engine, err));
  berth__block *block = berth__alloc_zero(engine->core.ctx, sizeof *block);
  if (block == NULL) return berth__fail_nomem(err, "an arena");
  block->engine = engine;
  const berth_status status = berth__cpu_device.block_create(engine->host, size, align, host, &block->host, err);
  if (status != BERTH_OK) {
    berth__free(engine->core.ctx, block);
    return status;
  }
  *out = block;
  return BERTH_OK;
}

static void block_destroy(berth__block *block) {
  if (block == NULL) return;
  berth__gpu_forget_block(block->engine, block);
  berth__cpu_device.block_destroy(block->host);
  berth__free(block->engine->core.ctx, block);
}

static void *host_of(berth__block *block) { return berth__cpu_device.host(block->host); }

static berth_status write_block(berth__block *block, uint64_t offset, const void *src, uint64_t size,
                                berth_error *err) {
  BERTH__TRY(count_call(block->engine, err));
  return berth__cpu_device.write(block->host, offset, src, size, err);
}

static berth_status read_block(const berth__block *block, uint64_t offset, void *dst, uint64_t size, berth_error *err) {
  BERTH__TRY(count_call(block->engine, err));
  return berth__cpu_device.read(block->host, offset, dst, size, err);
}

static berth_status interp_copy(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                                uint64_t size, berth_error *err) {
  BERTH__TRY(count_call(dst->engine, err));
  return berth__cpu_device.copy(dst->host, dst_offset, src->host, src_offset, size, err);
}

static berth_status interp_fill(berth__block *block, uint64_t offset, uint64_t size, uint8_t byte, berth_error *err) {
  BERTH__TRY(count_call(block->engine, err));
  return berth__cpu_device.fill(block->host, offset, size, byte, err);
}

/* ---- The driver ---- */

static void code_destroy(berth__gpu_code *code) {
  berth__free(code->engine->core.ctx, code->room);
  berth__free(code->engine->core.ctx, code);
}

static berth_status code_create(berth__engine *engine, const berth__recipe *recipe, berth__gpu_code **out,
                                berth_error *err) {
  uint64_t room = 0;
  *out = NULL;
  BERTH__TRY(count_call(engine, err));
  for (size_t i = 0; i < recipe->n_kernels; i++) {
    const uint64_t needed = berth__kernel_room(recipe->kernels[i]);
    if (needed > room) room = needed;
  }
  berth__gpu_code *code = berth__alloc_zero(engine->core.ctx, sizeof *code);
  if (code == NULL) return berth__fail_nomem(err, "a program");
  *code = (berth__gpu_code){engine, recipe, berth__alloc_u64(engine->core.ctx, room + 1)};
  if (code->room == NULL) {
    code_destroy(code);
    return berth__fail_nomem(err, "a program");
  }
  *out = code;
  return BERTH_OK;
}

static berth_status interp_make_pipeline(berth__gpu_code *code, size_t dispatch, berth_error *err) {
  (void)dispatch;
  return count_call(code->engine, err);
}

static berth_status bind(berth__gpu_code *code, berth__block *block, const berth__gpu_part *parts, size_t n_parts,
                         berth__gpu_binding **out, berth_error *err) {
  *out = NULL;
  for (size_t i = 0; i < n_parts + 1; i++) BERTH__TRY(count_call(code->engine, err)); /* like one that records parts */
  (void)parts;
  berth__gpu_binding *binding = berth__alloc_zero(code->engine->core.ctx, sizeof *binding);
  if (binding == NULL) return berth__fail_nomem(err, "a program");
  *binding = (berth__gpu_binding){.code = code, .base = host_of(block)};
  *out = binding;
  return BERTH_OK;
}

static void unbind(berth__gpu_binding *binding) { berth__free(binding->code->engine->core.ctx, binding); }

static berth_status interp_submit(berth__gpu_binding *binding, const berth__gpu_part *part, bool timed,
                                  berth_error *err) {
  (void)timed;
  BERTH__TRY(count_call(binding->code->engine, err));
  binding->part = *part;
  return BERTH_OK;
}

static berth_status run_dispatch(const berth__gpu_binding *binding, const berth__dispatch *dispatch, berth_error *err) {
  const berth__recipe *recipe = binding->code->recipe;
  const berth__kernel *kernel = recipe->kernels[dispatch->kernel];
  berth__kernel_memory memory[BERTH__KERNEL_BUFFERS];
  for (uint32_t i = 0; i < kernel->n_buffers; i++) {
    const berth__span *span = &dispatch->spans[i], *exact = &dispatch->exact[i];
    const berth_storage storage = berth_type_storage(kernel->buffers[i].storage);
    const bool by_words = storage.bytes == 4; /* a narrow value may be accessed as words, too */
    memory[i] = (berth__kernel_memory){
        .words = (uint32_t *)(void *)(binding->base + span->at),
        .count = berth__storage_count(storage, by_words ? span->size : exact->at - span->at + exact->size),
        .first = by_words ? 0 : (uint32_t)berth__storage_count(storage, exact->at - span->at)};
  }
  berth_status status = berth__kernel_interpret(kernel, memory, binding->code->room, err);
  if (status == BERTH_OK) return status;
  const berth_graph *graph = recipe->plan->graph;
  const berth__node *node = &graph->nodes[recipe->plan->order[dispatch->step]];
  return berth__fail_within(err, status, "node '%s' (%s)", graph->values[node->out[0]].name, node->op->name);
}

static berth_status interp_wait_for(berth__gpu_binding *binding, berth_error *err) {
  BERTH__TRY(count_call(binding->code->engine, err));
  for (size_t i = binding->part.first; i < binding->part.end; i++)
    BERTH__TRY(run_dispatch(binding, &binding->code->recipe->dispatches[i], err));
  return BERTH_OK;
}

static size_t interp_timed_steps(const berth__engine *engine) {
  (void)engine;
  return 0;
}

static const berth__gpu_driver driver = {.device = &berth__interp_device,
                                         .is_host = true,
                                         .alive = alive,
                                         .code_create = code_create,
                                         .make_pipeline = interp_make_pipeline,
                                         .code_destroy = code_destroy,
                                         .bind = bind,
                                         .unbind = unbind,
                                         .submit = interp_submit,
                                         .wait = interp_wait_for,
                                         .timed_steps = interp_timed_steps};

const berth__device berth__interp_device = {
    .name = "interp",
    .runs_steps_apart = true,
    .describe = interp_describe,
    .limits = interp_limits,
    .multiplies = true,
    .exchanges = true,
    .has_dot4 = true,
    .open = open_interp,
    .use_threads = berth__gpu_use_threads,
    .close = close_interp,
    .block_create = block_create,
    .block_destroy = block_destroy,
    .write = write_block,
    .read = read_block,
    .copy = interp_copy,
    .fill = interp_fill,
    .host = host_of,
    .clock = berth__gpu_clock,
    BERTH__GPU_ROWS,
};
