/* Op cases as graphs of one node, through the public API. */
#ifndef BERTH_TESTS_OPS_CASE_GRAPH_H
#define BERTH_TESTS_OPS_CASE_GRAPH_H

#include <stdbool.h>

#include "cases.h"

#define CASE_NO_OPERAND UINT32_MAX
#define CASE_SPARE 2 /* slices of `wide` that are left out: the first and the last */

/* bounded: which operand gets an extent that only a run knows: the input `wide`, of which `keep` says what is there. */
berth_status case_build(berth_context *ctx, const op_case *c, uint32_t bounded, berth_graph **graph, berth_error *err);
/* Operands that shapes depend on must be known when a plan is made, but for those that leave extents bounded. */
berth_status case_fix_operands(berth_graph *graph, const op_case *c, bool bounds_too, berth_error *err);
berth_status case_run(berth_session *session, const op_case *c, berth_error *err);
/* Whether the outputs are as the case says; says on stderr where they are not. */
bool case_matches(berth_session *session, const op_case *c, const char *device, berth_error *err);
/* A loop_end by itself is no graph; tests/plan/test_loops.c runs whole loops. */
bool case_is_graph(const op_case *c);

#endif
