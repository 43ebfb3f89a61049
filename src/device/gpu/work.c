/* What nodes cost on a large GPU, so that a budget is met with the choices that take least time there: products are
 * faster by far than the operations of other nodes, most of which wait for memory, and every kernel takes time to
 * start. The numbers were measured on an H200. */
#include "plan/remake.h"

#include "device/gpu/recipe.h"
#include "kernel/lower/tile.h"

#define UNITS 1e4        /* per nanosecond, so that what only moves elements costs about what it does in plan/work.c */
#define BYTES 3500.0     /* per nanosecond, to and from memory */
#define OPERATIONS 3e4   /* per nanosecond, of nodes that matrix units do not compute */
#define OF_ATTENTION 9e4 /* the same on matrix units, with the exponentials between */
#define LAUNCH 2000.0    /* nanoseconds */

static double gpu_work_bytes(const berth_graph *graph, berth_value value, const berth_storage *storages) {
  int64_t count = 0;
  if (value == BERTH_VALUE_NONE || !berth__shape_count(&graph->values[value].shape, &count)) return 0;
  return (double)berth__storage_size(storages[value], (uint64_t)count);
}

double berth__gpu_work(const berth__limits *limits, const berth_graph *graph, const berth__node *node,
                       const berth_storage *storages) {
  const berth__kernel_limits *loops = &limits->profile.loops;
  if (!loops->has_warpgroups || storages == NULL) return berth__node_work(graph, node);
  double bytes = 0, time = berth__gpu_product_time(graph, node);
  for (uint32_t i = 0; i < node->n_in; i++) bytes += gpu_work_bytes(graph, node->in[i], storages);
  for (uint32_t i = 0; i < node->n_out; i++) bytes += gpu_work_bytes(graph, node->out[i], storages);
  if (time == 0)
    time = berth__node_operations(graph, node) /
           (berth__gpu_attends_by_units(loops, graph, node) ? OF_ATTENTION : OPERATIONS);
  return UNITS * (LAUNCH + (time > bytes / BYTES ? time : bytes / BYTES));
}
