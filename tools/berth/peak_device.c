/* The peak of a device, measured with berth's own kernels run like any model: a product for multiply-adds, an
 * element-wise node and row sums for bandwidth. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "peak.h"

enum {
  first_side = 128, /* of the product's matrices */
  last_side = 4096,
  row_length = 1024, /* elements per sum */
  least_rounds = 3,
  most_rounds = 20
};

static const double long_ms = 20; /* runs this long are accurate: larger ones are not tried */

typedef struct probe {
  berth_context *ctx;
  const char *device, *gpu_profile;
} probe;

static void add_ms(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  (void)step, (void)node, (void)out, (void)n_out;
  *(double *)user += ms;
}

/* By the device's clock if it has one; if that is too coarse and returns 0, by the host's. */
static double one_run(berth_session *session) {
  double steps_ms = 0;
  berth_session_observe(session, add_ms, &steps_ms);
  const double start = cli_now_ms();
  const bool failed = berth_session_run(session, NULL) != BERTH_OK;
  const double ms = cli_now_ms() - start;
  if (failed) return 0;
  return berth_session_clock(session) == BERTH_CLOCK_DEVICE && steps_ms > 0 ? steps_ms : ms;
}

/* The fastest of several runs after a warm-up; 0: not available. */
static double best_run(berth_session *session) {
  double best = one_run(session), sum = 0;
  for (int i = 0; i < most_rounds && (i < least_rounds || sum < long_ms) && best > 0; i++) {
    const double ms = one_run(session);
    if (ms <= 0) return 0;
    if (i == 0 || ms < best) best = ms;
    sum += ms;
  }
  return best;
}

static bool tool_peak_device_write_input(berth_session *session, const char *name, size_t count) {
  float *values = malloc(count * sizeof(*values));
  if (!values) return false;
  for (size_t i = 0; i < count; i++) values[i] = (float)(i % 7) * 0.25f;
  const bool written = berth_session_write(session, name, values, count * sizeof(*values), NULL) == BERTH_OK;
  free(values);
  return written;
}

/* The time of a graph whose inputs have `count` elements each; 0: not available. */
static double time_graph(const probe *p, const char *text, const char *const *inputs, size_t n_inputs, size_t count) {
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  double ms = 0;
  plan.gpu_profile = p->gpu_profile;
  desc.plan = &plan;
  desc.device = p->device;
  if (berth_graph_parse(p->ctx, text, strlen(text), &graph, NULL) == BERTH_OK &&
      berth_session_create(graph, &desc, &session, NULL) == BERTH_OK) {
    bool written = true;
    for (size_t i = 0; i < n_inputs && written; i++) written = tool_peak_device_write_input(session, inputs[i], count);
    if (written) ms = best_run(session);
  }
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  return ms;
}

static double time_product(const probe *p, uint64_t side) {
  static const char *const inputs[] = {"x", "y"};
  char text[256];
  const unsigned n = (unsigned)side;
  snprintf(text, sizeof(text),
           "graph \"product\" { input %%x : f32[%u, %u] input %%y : f32[%u, %u] %%z = matmul(%%x, %%y) output \"z\" = "
           "%%z }",
           n, n, n, n);
  return time_graph(p, text, inputs, 2, (size_t)(side * side));
}

/* Doubles the size until a run takes long enough. */
static double product_gflops(const probe *p) {
  double best = 0, ms = 0;
  for (uint64_t side = first_side; side <= last_side && ms < long_ms; side *= 2) {
    if (ms > 0 && ms * 64 < long_ms && 4 * side <= last_side) side *= 4; /* far too small */
    ms = time_product(p, side);
    if (ms <= 0) break;
    const double rate = 2 * (double)side * (double)side * (double)side / ms * 1e-6;
    if (rate > best) best = rate;
  }
  return best;
}

/* Copies this many bytes, half of them read and half written. */
static double time_copy(const probe *p, uint64_t bytes) {
  static const char *const inputs[] = {"x"};
  char text[160];
  const uint64_t count = bytes / 2 / sizeof(float);
  snprintf(text, sizeof(text), "graph \"copy\" { input %%x : f32[%llu] %%y = neg(%%x) output \"y\" = %%y }",
           (unsigned long long)count);
  return time_graph(p, text, inputs, 1, (size_t)count);
}

/* The same, but all bytes are read. */
static double time_sums(const probe *p, uint64_t bytes) {
  static const char *const inputs[] = {"x"};
  char text[160];
  const uint64_t rows = bytes / row_length / sizeof(float);
  snprintf(text, sizeof(text),
           "graph \"sums\" { input %%x : f32[%llu, %u] %%y = reduce_sum(%%x) {axes = [1]} output \"y\" = %%y }",
           (unsigned long long)rows, (unsigned)row_length);
  return time_graph(p, text, inputs, 1, (size_t)(rows * row_length));
}

/* The faster of both: one element per thread is not the fastest way on every device. */
static double copy_rate(const probe *p, uint64_t bytes, double *ms) {
  const double copied = time_copy(p, bytes), summed = time_sums(p, bytes);
  *ms = copied > 0 && (summed <= 0 || copied < summed) ? copied : summed;
  return *ms > 0 ? (double)bytes / *ms * 1e-6 : 0;
}

peak peak_measure_on(berth_context *ctx, const char *device, const char *gpu_profile) {
  const probe p = {ctx, device, gpu_profile};
  peak total = {.is_device = true, .gflops = product_gflops(&p)};
  double ms = 0, rate = 0;
  for (int i = 0; i < PEAK_COPIES; i++) {
    total.copies[i].bytes = peak_copy_bytes[i];
    const double found = ms < long_ms ? copy_rate(&p, peak_copy_bytes[i], &ms) : 0;
    if (found > 0) rate = found; /* if it was not measured, the rate of the largest size before */
    total.copies[i].gb_per_s = rate;
  }
  return total;
}
