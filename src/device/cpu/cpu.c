/* The CPU as a device. */
#include "device/cpu/cpu.h"

#include <stdio.h>
#include <unistd.h>

#ifdef __wasm_simd128__
static void cpu_read_model(char *model, size_t size) { snprintf(model, size, "WebAssembly, 128-bit SIMD"); }
#else
/* The model name that the system reports, if any. */
static void cpu_read_model(char *model, size_t size) {
  char line[256];
  FILE *file = fopen("/proc/cpuinfo", "r");
  snprintf(model, size, "host processor");
  if (file == NULL) return;
  while (fgets(line, sizeof line, file) != NULL) {
    char *value = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || value == NULL) continue;
    line[strcspn(line, "\n")] = '\0';
    snprintf(model, size, "%.80s", value + 1 + strspn(value + 1, " "));
    break;
  }
  fclose(file);
}
#endif

static void cpu_describe(const berth_context *ctx, uint32_t index, berth_device_info *out) {
  char model[96];
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  (void)index;
  cpu_read_model(model, sizeof model);
  snprintf(out->description, sizeof out->description, "%s, %u thread%s", model, ctx->n_threads,
           ctx->n_threads == 1 ? "" : "s");
  out->available = 1;
  out->memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

static berth_status open_cpu(berth_context *ctx, const char *which, uint32_t n_threads, berth__engine **out,
                             berth_error *err) {
  *out = NULL;
  (void)which;
  BERTH__TRY(berth__cpu_kernels_check(ctx, err));
  berth__engine *engine = berth__alloc_zero(ctx, sizeof *engine);
  if (engine == NULL) return berth__fail_nomem(err, "the cpu device");
  engine->ctx = ctx;
  engine->n_threads = n_threads;
  berth_status status = n_threads > 1 ? berth__pool_create(ctx, n_threads, &engine->pool, err) : BERTH_OK;
  if (status != BERTH_OK) {
    berth__free(ctx, engine);
    return status;
  }
  *out = engine;
  return BERTH_OK;
}

static void use_threads(berth__engine *engine, berth__pool *pool) {
  engine->pool = pool;
  engine->n_threads = berth__pool_n_threads(pool);
}

static void close_cpu(berth__engine *engine) {
  if (engine == NULL) return;
  berth__pool_destroy(engine->pool);
  berth__free(engine->ctx, engine);
}

static uint64_t cpu_scratch(const berth__limits *limits, const berth__op *op, const berth_op_call *call,
                            uint32_t n_threads, uint32_t flags) {
  const berth__cpu_kernels kernels = berth__cpu_kernels_of(limits->ctx);
  berth__cpu_choice choice = berth__cpu_choose(&kernels, op, call, flags);
  return berth__cpu_scratch(&choice, n_threads);
}

static berth__limits cpu_limits(void) {
  return (berth__limits){.device = "cpu",
                         .min_align = 16,
                         .takes_small = true,
                         .max_block = 0,
                         .scratch = cpu_scratch,
                         .lies_over = true,
                         .has_prelude = true,
                         .rewrite = berth__cpu_rewrite};
}

const berth__device berth__cpu_device = {
    .name = "cpu",
    .runs_steps_apart = true,
    .describe = cpu_describe,
    .limits = cpu_limits,
    .open = open_cpu,
    .use_threads = use_threads,
    .close = close_cpu,
    .block_create = berth__cpu_block_create,
    .block_destroy = berth__cpu_block_destroy,
    .block_grow = berth__cpu_block_grow,
    .write = berth__cpu_write,
    .place = berth__cpu_place,
    .map = berth__cpu_map,
    .read = berth__cpu_read,
    .copy = berth__cpu_copy,
    .fill = berth__cpu_fill,
    .host = berth__cpu_host,
    .program_create = berth__cpu_program_create,
    .program_destroy = berth__cpu_program_destroy,
    .program_bind = berth__cpu_program_bind,
    .prepare = berth__cpu_prepare,
    .shapes = berth__cpu_shapes,
    .submit = berth__cpu_submit,
    .wait = berth__cpu_wait,
};
