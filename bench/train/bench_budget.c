/* The cost of a budget in training: for fractions of what a step needs in addition to weights and moments, the added
 * work and the planning time.
 *   bench_budget [NAME] [PERCENT...] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpt2.h"
#include "work.h"

typedef struct row {
  const char *name;
  gpt2_shape shape;
  int is_sgd, is_inference;
} row;

static const row rows[] = {
    {"char", {8, 256, 65, 256, 12, 6, 384}, 0, 0},           /* a character model */
    {"gpt2", {8, 256, 50257, 1024, 12, 12, 768}, 0, 0},      /* GPT-2 124M */
    {"gpt2-small", {4, 64, 50257, 1024, 12, 12, 768}, 0, 0}, /* the same, with the sizes of llm.c's benchmark */
    {"inference", {8, 256, 65, 256, 12, 6, 384}, 0, 1},
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void stop(const berth_error *err) {
  fprintf(stderr, "%s\n", err->message);
  exit(1);
}

static double flops_of(const berth_plan *plan) {
  const berth_graph *graph = berth_plan_graph(plan);
  double total = 0;
  for (uint32_t i = 0; i < berth_graph_n_nodes(graph); i++) {
    berth_node_info node = BERTH_NODE_INFO_INIT;
    if (berth_graph_node(graph, i, &node, NULL) == BERTH_OK) total += work_of_node(graph, NULL, &node).flops;
  }
  return total;
}

static void measure(const berth_graph *graph, const berth_plan *without, double percent) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  berth_plan *plan;
  berth_error err;
  if (berth_plan_get_info(without, &info, &err) != BERTH_OK) stop(&err);
  const double fixed = (double)(info.weights_size + info.state_size), rest = (double)info.arena_size - fixed;
  desc.budget = (uint64_t)(fixed + rest * percent / 100);
  desc.flags = BERTH_PLAN_INPUTS_DIE;
  const double before = now();
  const berth_status status = berth_plan_create(graph, &desc, &plan, &err);
  const double seconds = now() - before;
  if (status != BERTH_OK) {
    printf("  %3.0f %%: %s, %.1f s\n", percent, err.message, seconds);
    return;
  }
  if (berth_plan_get_info(plan, &info, &err) != BERTH_OK) stop(&err);
  printf("  %3.0f %%: %6.1f MB, %+5.1f %% work, %u nodes again, %u groups in slices, planned in %.2f s\n", percent,
         ((double)info.arena_size - fixed) * 1e-6, 100 * (flops_of(plan) / flops_of(without) - 1), info.n_recomputed,
         info.n_split, seconds);
  fflush(stdout);
  berth_plan_destroy(plan);
}

static void measure_row(berth_context *ctx, const row *r, int n, char **percents) {
  static char *usual[] = {"75", "50", "35", "25", "15"};
  berth_train_desc how = BERTH_TRAIN_DESC_INIT;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  if (build_gpt2(ctx, &r->shape, &graph, &err) != BERTH_OK) stop(&err);
  if (!r->is_inference && berth_graph_train(graph, berth_graph_find(graph, "loss"), &how, &err) != BERTH_OK) stop(&err);
  desc.flags = BERTH_PLAN_INPUTS_DIE;
  const double before = now();
  if (berth_plan_create(graph, &desc, &plan, &err) != BERTH_OK) stop(&err);
  const double seconds = now() - before;
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  if (berth_plan_get_info(plan, &info, &err) != BERTH_OK) stop(&err);
  printf("%s: %.1f MB beside weights and moments, %u steps, planned in %.2f s\n", r->name,
         (double)(info.arena_size - info.weights_size - info.state_size) * 1e-6, info.n_steps, seconds);
  for (int i = 0; i < (n > 0 ? n : 5); i++) measure(graph, plan, atof(n > 0 ? percents[i] : usual[i]));
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
}

int main(int argc, char **argv) {
  berth_context *ctx;
  berth_error err;
  if (berth_context_create(NULL, &ctx, &err) != BERTH_OK) stop(&err);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (argc < 2 || strcmp(argv[1], rows[i].name) == 0) measure_row(ctx, &rows[i], argc - 2, argv + 2);
  berth_context_destroy(ctx);
  return 0;
}
