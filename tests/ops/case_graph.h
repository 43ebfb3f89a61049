/* Op cases as graphs of one node, through the public API. */
#ifndef BERTH_TESTS_OPS_CASE_GRAPH_H
#define BERTH_TESTS_OPS_CASE_GRAPH_H

#include <stdbool.h>

#include "cases.h"

#define CASE_NO_OPERAND UINT32_MAX
#define CASE_SPARE 2 /* omitted slices of `wide`: the first and the last */

/* bounded: the operand with an extent that only a run knows: the input `wide`, of which `keep` selects a part. */
berth_status case_build(berth_context *ctx, const op_case *c, uint32_t bounded, berth_graph **graph, berth_error *err);
/* Operands that shapes depend on must be known when a plan is made, except those that leave extents bounded. */
berth_status case_fix_operands(berth_graph *graph, const op_case *c, bool bounds_too, berth_error *err);
berth_status case_run(berth_session *session, const op_case *c, berth_error *err);
/* Whether the outputs match the case; reports differences on stderr. */
bool case_matches(berth_session *session, const op_case *c, const char *device, berth_error *err);
/* A loop_end alone is not a graph; tests/plan/test_loops.c runs whole loops. */
bool case_is_graph(const op_case *c);

#endif
