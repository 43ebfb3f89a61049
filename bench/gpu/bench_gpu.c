/* berth's matrix product on the device vulkan, compared with simple hand-written kernels:
 *
 *   bench_gpu [ROUNDS]
 *
 * One line per shape: the best GFLOP/s of each over all rounds, and berth's ratio to the best simple one. Results are
 * compared, too. Without such a device it only says so. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "kernel/lower.h"
#include "kernel/render.h"
#include "simple.h"

typedef struct shape {
  int64_t m, n, k;
} shape;
static const shape shapes[] = {{256, 256, 256},  {128, 384, 384}, {128, 1536, 384}, {128, 384, 1536},
                               {196, 256, 1024}, {64, 3136, 64},  {1, 2048, 512}};
#define MOST 1048576 /* elements of a matrix */

#define FORMS 2 /* berth's, with the device's own limits and with shared memory */
#define MOST_KERNELS (FORMS + SIMPLE_KERNELS)

/* ---- berth's kernels ---- */

static berth_tensor matrix(int64_t rows, int64_t columns) {
  return (berth_tensor){.type = BERTH_F32, .rank = 2, .dim = {rows, columns}, .stride = {columns, 1}};
}

static berth_status render(berth_context *ctx, const berth__lowering *l, gpu_kernel *out, berth__text *source,
                           berth_error *err) {
  const berth__render_desc desc = {.windows = false};
  const berth__kernel *kernel = l->kernels[0];
  static const uint32_t starts[3] = {0, MOST, 2 * MOST};
  out->columns = berth__grid_columns(kernel->n_groups);
  out->rows = berth__grid_rows(kernel->n_groups);
  for (uint32_t i = 0; i < kernel->n_buffers; i++) out->at[i] = starts[kernel->buffers[i].operand];
  berth__text_init(source, ctx, NULL, NULL);
  BERTH__TRY(berth__render_glsl(kernel, &desc, source, err));
  return berth__text_finish(source, err);
}

static berth_status make_ours(gpu *g, const shape *s, bool shares, gpu_kernel *out, berth_error *err) {
  berth__kernel_limits limits = g->engine->core.profile.loops;
  const berth_tensor in[2] = {matrix(s->m, s->k), matrix(s->k, s->n)}, result = matrix(s->m, s->n);
  const berth__op *op = berth__op_builtin(BERTH__OP_matmul);
  const berth_op_call call = {.in = in, .out = &result, .n_in = 2, .n_out = 1, .user = berth__op_user(op)};
  berth__text source = {0};
  if (shares) limits.shares_well = true;
  berth__lowering l = {.ctx = g->ctx, .limits = &limits, .op = op, .call = &call};
  out->name = shares ? "ours, shared" : "ours";
  berth_status status = berth__lower_call(&l, err);
  if (status == BERTH_OK) status = render(g->ctx, &l, out, &source, err);
  if (status == BERTH_OK && getenv("BERTH_BENCH_SOURCE") != NULL) fprintf(stderr, "%s\n", source.data);
  if (status == BERTH_OK) status = gpu_make(g, out, source.data, err);
  berth__text_free(&source);
  berth__lowering_free(&l);
  return status;
}

/* ---- Hand-written kernels ---- */

static berth_status make_simple(gpu *g, const shape *s, size_t which, gpu_kernel *out, berth_error *err) {
  const simple_kernel *simple = &simple_kernels[which];
  char source[4096];
  const int64_t columns = simple->width * 8, rows = simple->height * 8;
  const int n = snprintf(source, sizeof source, "#version 450\n#define M %lld\n#define N %lld\n#define K %lld\n%s%s",
                         (long long)s->m, (long long)s->n, (long long)s->k, simple_head, simple->body);
  out->name = simple->name;
  if (n < 0 || (size_t)n >= sizeof source) return berth__fail(err, BERTH_INVALID, "a kernel is too long");
  out->columns = (uint32_t)((s->n + columns - 1) / columns);
  out->rows = (uint32_t)((s->m + rows - 1) / rows);
  out->at[1] = MOST;
  out->at[2] = 2 * MOST;
  return gpu_make(g, out, source, err);
}

/* ---- Measuring ---- */

static berth_status check(gpu *g, const shape *s, gpu_kernel *kernel, const float *expected, berth_error *err) {
  const size_t count = (size_t)(s->m * s->n);
  float *got = malloc(count * sizeof *got);
  double worst = 0;
  if (got == NULL) return berth__fail_nomem(err, "a result");
  berth_status status = berth__vulkan_fill(g->block, 8 * (uint64_t)MOST, 4 * (uint64_t)count, 0xff, err);
  if (status == BERTH_OK) status = gpu_time(g, kernel, err);
  if (status == BERTH_OK) status = berth__vulkan_read(g->block, 8 * (uint64_t)MOST, got, 4 * (uint64_t)count, err);
  for (size_t i = 0; status == BERTH_OK && i < count; i++) {
    const double off = fabs((double)got[i] - (double)expected[i]);
    if (!(off <= worst)) worst = off;
  }
  free(got);
  if (status == BERTH_OK && !(worst < 1e-3))
    return berth__fail(err, BERTH_INVALID, "'%s' is off by %g", kernel->name, worst);
  return status;
}

static void multiply(const shape *s, const float *a, const float *b, float *out) {
  for (int64_t i = 0; i < s->m; i++)
    for (int64_t j = 0; j < s->n; j++) {
      double sum = 0;
      for (int64_t k = 0; k < s->k; k++) sum += (double)a[i * s->k + k] * (double)b[k * s->n + j];
      out[i * s->n + j] = (float)sum;
    }
}

static void report(const shape *s, const gpu_kernel *kernels, size_t count) {
  const double work = 2e-9 * (double)s->m * (double)s->n * (double)s->k;
  double best = INFINITY;
  printf("%4lld x %4lld x %4lld", (long long)s->m, (long long)s->n, (long long)s->k);
  for (size_t i = 0; i < count; i++) {
    printf("  %s %.1f", kernels[i].name, work / kernels[i].best);
    if (i >= FORMS && kernels[i].best < best) best = kernels[i].best;
  }
  printf("  -> %.2f of the best simple one's speed\n", best / kernels[0].best);
  fflush(stdout);
}

static berth_status measure(gpu *g, const shape *s, int rounds, const float *expected, berth_error *err) {
  gpu_kernel kernels[MOST_KERNELS] = {{0}};
  size_t count = 0;
  berth_status status = BERTH_OK;
  for (; status == BERTH_OK && count < FORMS; count++) status = make_ours(g, s, count == 1, &kernels[count], err);
  for (; status == BERTH_OK && count < MOST_KERNELS; count++) {
    if (s->m % simple_kernels[count - FORMS].height != 0) break;
    status = make_simple(g, s, count - FORMS, &kernels[count], err);
  }
  for (size_t i = 0; status == BERTH_OK && i < count; i++) status = check(g, s, &kernels[i], expected, err);
  for (int round = 0; round < rounds; round++)
    for (size_t i = 0; status == BERTH_OK && i < count; i++) status = gpu_time(g, &kernels[i], err);
  if (status == BERTH_OK) report(s, kernels, count);
  for (size_t i = 0; i < count; i++) gpu_free(g, &kernels[i]);
  return status;
}

static berth_status run_all(gpu *g, int rounds, float *data, berth_error *err) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    multiply(&shapes[i], data, data + MOST, data + 2 * MOST);
    BERTH__TRY(measure(g, &shapes[i], rounds, data + 2 * MOST, err));
  }
  return BERTH_OK;
}

int main(int argc, char **argv) {
  berth_error err = {.message = ""};
  gpu g = {0};
  const int rounds = argc > 1 ? atoi(argv[1]) : 5;
  float *data = malloc((size_t)3 * MOST * sizeof *data);
  if (data == NULL) return 1;
  for (uint32_t i = 0; i < 2 * MOST; i++) data[i] = (float)((i * 2654435761u >> 8) & 0xffff) / 65536.0f - 0.5f;
  berth_status status = berth_context_create(NULL, &g.ctx, &err);
  if (status == BERTH_OK) status = gpu_open(&g, (uint64_t)12 * MOST, &err);
  if (status == BERTH_OK) status = berth__vulkan_write(g.block, 0, data, (uint64_t)8 * MOST, &err);
  if (status == BERTH_OK)
    printf("%s, GFLOP/s%s:\n", g.engine->properties.deviceName,
           g.engine->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ? " a core" : "");
  if (status == BERTH_OK) status = run_all(&g, rounds, data, &err);
  const bool is_missing = status == BERTH_UNSUPPORTED && g.engine == NULL;
  if (status != BERTH_OK) fprintf(is_missing ? stdout : stderr, "bench_gpu: %s\n", err.message);
  gpu_close(&g);
  berth_context_destroy(g.ctx);
  free(data);
  return status == BERTH_OK || is_missing ? 0 : 1;
}
