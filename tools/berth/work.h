/* The work of a node, from its shapes and storage: arithmetic operations, and bytes read and written. */
#ifndef BERTH_TOOLS_WORK_H
#define BERTH_TOOLS_WORK_H

#include "berth/berth.h"

typedef struct work {
  double flops;   /* a multiplication and an addition count as two; 0 for ops that only move elements */
  uint64_t bytes; /* every operand read once and every result written once */
} work;

/* The graph must be bound. Bytes are those of elements as the plan stores them or, without a plan (NULL), as their
 * types say. Ops unknown to work.c count no arithmetic. */
work work_of_node(const berth_graph *graph, const berth_plan *plan, const berth_node_info *node);

#endif
