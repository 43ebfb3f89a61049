/* What planning saves on a MiniLM-L6 encoder, beside what common planners do, and how long planning takes. Prints the
 * tables of docs/benchmarks.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "berth/berth.h"
#include "minilm.h"

#define ROUNDS 31
#define SCORE_BYTES                                                                                 \
  ((uint64_t)12 * 128 * 128 * 4) /* what an attention that keeps all its scores takes beside a plan \
                                  */

typedef struct interval {
  uint64_t size, offset;
  unsigned lower, upper;
} interval;

typedef struct text {
  char *data;
  size_t size;
} text;

static void die(const berth_error *err) {
  fprintf(stderr, "bench_plan: %s\n", err->message);
  exit(1);
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static berth_status collect(void *user, const char *piece, size_t size) {
  text *t = user;
  char *grown = realloc(t->data, t->size + size + 1);
  if (grown == NULL) return BERTH_NOMEM;
  t->data = grown;
  memcpy(t->data + t->size, piece, size);
  t->size += size;
  t->data[t->size] = '\0';
  return BERTH_OK;
}

static int by_size(const void *a, const void *b) {
  const interval *x = a, *y = b;
  return x->size != y->size ? (x->size < y->size ? 1 : -1) : (x->lower > y->lower) - (x->lower < y->lower);
}

/* The classical planner: the largest first, each at the lowest offset that is free while it lives. */
static uint64_t greedy_by_size(interval *items, size_t n) {
  uint64_t end = 0;
  qsort(items, n, sizeof *items, by_size);
  for (size_t i = 0; i < n; i++) {
    uint64_t at = 0;
    for (size_t k = 0; k < i;) {
      const interval *other = &items[k++];
      int meets = other->lower < items[i].upper && items[i].lower < other->upper;
      if (!meets || other->offset >= at + items[i].size || at >= other->offset + other->size) continue;
      at = other->offset + other->size;
      k = 0; /* the new place may meet one that was passed before */
    }
    items[i].offset = at;
    if (at + items[i].size > end) end = at + items[i].size;
  }
  return end;
}

static berth_plan_info plan_info(const berth_plan *plan) {
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  berth_error err;
  if (berth_plan_get_info(plan, &info, &err)) die(&err);
  return info;
}

/* The activations of a plan, packed as the classical planner would. */
static uint64_t classical(const berth_plan *plan) {
  text csv = {NULL, 0};
  berth_error err;
  berth_plan_info info = plan_info(plan);
  if (berth_plan_report(plan, BERTH_REPORT_CSV, collect, &csv, &err)) die(&err);
  interval *items = calloc(info.n_buffers + 1, sizeof *items);
  size_t n = 0;
  for (char *line = strchr(csv.data, '\n'); line != NULL && line[1] != '\0'; line = strchr(line + 1, '\n')) {
    interval x;
    unsigned long long size, offset;
    char name[256];
    if (sscanf(line + 1, "%255[^,],%u,%u,%llu,%llu", name, &x.lower, &x.upper, &size, &offset) != 5) continue;
    x.size = size;
    if (offset >= info.weights_size && strstr(name, ":scratch") == NULL) items[n++] = x;
  }
  uint64_t end = greedy_by_size(items, n);
  free(items);
  free(csv.data);
  return end;
}

static berth_plan *plan_in(const berth_graph *graph, uint32_t flags, berth_order order) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_plan *plan;
  berth_error err;
  desc.flags = flags;
  desc.n_threads = 1;
  desc.order = order;
  if (berth_plan_create(graph, &desc, &plan, &err)) die(&err);
  return plan;
}

static berth_plan *plan_with(const berth_graph *graph, uint32_t flags) {
  return plan_in(graph, flags, BERTH_ORDER_SOURCE);
}

static void row(const char *what, const berth_plan *plan) {
  berth_plan_info info = plan_info(plan);
  printf("| %s | %llu | %llu | %llu | %s |\n", what, (unsigned long long)info.activations_size,
         (unsigned long long)info.activations_lower_bound, (unsigned long long)info.scratch_size,
         info.optimal ? "yes" : "no");
}

static void print_classical(const berth_graph *graph, uint32_t flags, const char *what) {
  berth_plan *plan = plan_with(graph, flags | BERTH_PLAN_NO_INPLACE | BERTH_PLAN_NO_STRIDED | BERTH_PLAN_NO_CONCAT);
  printf(
      "| greedy by size without in-place, as common planners do, %s | %llu | | %llu of attention scores outside the "
      "plan | |\n",
      what, (unsigned long long)classical(plan), (unsigned long long)SCORE_BYTES);
  berth_plan_destroy(plan);
}

static void print_memory(berth_context *ctx) {
  static const struct {
    const char *what;
    uint32_t flags;
  } variants[] = {
      {"no reuse; also what keeping every ancestor of an output alive gives", BERTH_PLAN_NO_REUSE},
      {"reuse, no in-place", BERTH_PLAN_NO_INPLACE},
      {"reuse and in-place, the input kept alive (the default)", 0},
      {"reuse and in-place, the input may die", BERTH_PLAN_INPUTS_DIE},
  };
  const minilm_shape shape = MINILM_L6;
  berth_graph *graph;
  berth_error err;
  if (build_minilm(ctx, &shape, &graph, &err)) die(&err);
  printf("MiniLM-L6 encoder, sequence 128, f32, one thread, bytes:\n\n");
  printf("| plan | activations | lower bound | scratch | proven optimal |\n|---|---|---|---|---|\n");
  for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
    berth_plan *plan = plan_with(graph, variants[i].flags);
    row(variants[i].what, plan);
    berth_plan_destroy(plan);
  }
  print_classical(graph, 0, "the input kept alive");
  print_classical(graph, BERTH_PLAN_INPUTS_DIE, "the input may die");
  printf("\n");
  berth_graph_destroy(graph);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median of several plans; what the last one is comes out too. */
static double time_of(const berth_graph *graph, berth_order order, berth_plan_info *info) {
  double ms[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) {
    double start = now_ms();
    berth_plan *plan = plan_in(graph, 0, order);
    ms[i] = now_ms() - start;
    *info = plan_info(plan);
    berth_plan_destroy(plan);
  }
  qsort(ms, ROUNDS, sizeof ms[0], by_value);
  return ms[ROUNDS / 2];
}

static void print_time(berth_context *ctx, uint32_t layers) {
  minilm_shape shape = MINILM_L6;
  berth_graph *graph;
  berth_error err;
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  shape.layers = layers;
  if (build_minilm(ctx, &shape, &graph, &err)) die(&err);
  double given = time_of(graph, BERTH_ORDER_SOURCE, &info), searched = time_of(graph, BERTH_ORDER_MEMORY, &info);
  printf("| %u | %u | %u | %.2f | %.2f | %s | %s |\n", layers, info.n_steps, info.n_buffers, given, searched,
         info.optimal ? "yes" : "no", info.order_optimal ? "yes" : "no");
  berth_graph_destroy(graph);
}

int main(void) {
  berth_context *ctx;
  berth_error err;
  if (berth_context_create(NULL, &ctx, &err)) die(&err);
  print_memory(ctx);
  printf("Planning time (bind, alias, pack; median of %d), encoders of the same form:\n\n", ROUNDS);
  printf(
      "| layers | nodes | buffers | ms, order as given | ms, order searched for | packing proven | order proven |\n");
  printf("|---|---|---|---|---|---|---|\n");
  print_time(ctx, 6);
  print_time(ctx, 24);
  print_time(ctx, 127);
  print_time(ctx, 400);
  berth_context_destroy(ctx);
  return 0;
}
