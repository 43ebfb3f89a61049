#include "budget.h"

#include <stdio.h>

#include "cli.h"
#include "work.h"

static double tool_budget_flops_of(const berth_plan *plan) {
  const berth_graph *graph = berth_plan_graph(plan);
  double total = 0;
  for (uint32_t i = 0; i < berth_graph_n_nodes(graph); i++) {
    berth_node_info node = BERTH_NODE_INFO_INIT;
    if (berth_graph_node(graph, i, &node, NULL) == BERTH_OK) total += work_of_node(graph, NULL, &node).flops;
  }
  return total;
}

double budget_extra_flops(const berth_plan *plan, const berth_plan *without) {
  const double before = tool_budget_flops_of(without);
  return before > 0 ? tool_budget_flops_of(plan) / before - 1 : 0;
}

void budget_print(const berth_plan *plan, double extra_flops) {
  const berth_plan_info info = cli_plan_info(plan);
  if (info.n_recomputed == 0 && info.n_split == 0) {
    printf("budget: met without recomputing or splitting\n");
    return;
  }
  printf("budget: met by ");
  if (info.n_recomputed != 0) printf("recomputing %u node%s", info.n_recomputed, cli_plural(info.n_recomputed));
  if (info.n_recomputed != 0 && info.n_split != 0) printf(" and ");
  if (info.n_split != 0)
    printf("splitting %u group%s of nodes into %u slices", info.n_split, cli_plural(info.n_split), info.n_slices);
  printf(" (%+.1f %% flops)\n", 100 * extra_flops);
}

void budget_write_json(const berth_plan *plan, uint64_t budget, double extra_flops, json *out) {
  const berth_plan_info info = cli_plan_info(plan);
  json_open_object(out, "budget");
  json_uint(out, "bytes", budget);
  json_uint(out, "recomputed", info.n_recomputed);
  json_uint(out, "split", info.n_split);
  json_uint(out, "slices", info.n_slices);
  json_double(out, "extra_flops", extra_flops);
  json_close_object(out);
}
