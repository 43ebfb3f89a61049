/* What planning saves on a MiniLM-L6 encoder compared with common planners, and how long planning takes. Prints the
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

/* The classical planner: largest first, each at the lowest offset that is free during its life. */
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
      k = 0; /* the new position may conflict with one that was passed before */
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

/* The median over several plans; also returns the last one. */
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

/* ---- Large graphs: planning is near linear in the number of nodes ---- */

typedef struct builder {
  berth_graph *graph;
  uint64_t random;
  berth_value *values;
  size_t n;
} builder;

static uint64_t draw(builder *b) {
  b->random = b->random * 6364136223846793005u + 1442695040888963407u;
  return b->random >> 33;
}

static void add_node(builder *b, const char *op, berth_value x, berth_value y, size_t n_in) {
  const berth_value in[] = {x, y};
  berth_error err;
  if (berth_graph_add(b->graph, op, in, n_in, NULL, 0, &b->values[b->n], 1, &err)) die(&err);
  b->n++;
}

/* One of the last 200. */
static berth_value recent(builder *b) { return b->values[b->n - 1 - draw(b) % (b->n < 200 ? b->n : 200)]; }

/* Products that share one weight: in sequence, or randomly among sums and activations. */
static double time_of_large(berth_context *ctx, size_t n, int is_random) {
  builder b = {.random = 1, .values = calloc(n + 1, sizeof(berth_value)), .n = 1};
  berth_value w;
  berth_error err;
  if (b.values == NULL || berth_graph_create(ctx, "large", &b.graph, &err)) die(&err);
  if (berth_graph_input(b.graph, "x", BERTH_F32, BERTH_SHAPE(4, 8), &b.values[0], &err)) die(&err);
  if (berth_graph_param(b.graph, "w", BERTH_F32, BERTH_SHAPE(8, 8), &w, &err)) die(&err);
  while (b.n <= n) {
    const uint64_t kind = is_random ? draw(&b) % 10 : 0;
    const berth_value x = is_random ? recent(&b) : b.values[b.n - 1];
    if (kind < 3)
      add_node(&b, "matmul", x, w, 2);
    else if (kind < 7)
      add_node(&b, "add", x, recent(&b), 2);
    else
      add_node(&b, "relu", x, x, 1);
  }
  for (size_t i = b.n > 50 ? b.n - 50 : 0; i < b.n; i++)
    if (berth_graph_output(b.graph, NULL, b.values[i], &err)) die(&err);
  const double start = now_ms();
  berth_plan_destroy(plan_in(b.graph, 0, BERTH_ORDER_MEMORY));
  const double ms = now_ms() - start;
  berth_graph_destroy(b.graph);
  free(b.values);
  return ms;
}

static void print_large(berth_context *ctx, size_t n) {
  printf("| %zu | %.0f | %.0f |\n", n, time_of_large(ctx, n, 0), time_of_large(ctx, n, 1));
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
  printf("\nPlanning time of large graphs whose products share one weight:\n\n");
  printf("| nodes | ms, products in a row | ms, products, sums and activations at random |\n|---|---|---|\n");
  print_large(ctx, 10000);
  print_large(ctx, 30000);
  print_large(ctx, 100000);
  berth_context_destroy(ctx);
  return 0;
}
