/* Runs a case directly on the op: inference and the reference kernel, without a graph, plan or device. */
#ifndef BERTH_TESTS_OPS_DIRECT_H
#define BERTH_TESTS_OPS_DIRECT_H

#include "cases.h"
#include "ops/op.h"

/* The case's attributes, in the kinds that the op declares: [1, 2] may mean dimensions, and 1 a float. */
typedef struct op_attrs {
  berth_attr attrs[OP_CASE_MAX]; /* as many as the case has */
  berth_dim dims[OP_CASE_MAX][64];
} op_attrs;

/* Each returns 1 if the case holds; otherwise 0 and one line on stderr that names the case. */

int op_case_attrs(const op_case *c, const berth__op *op, op_attrs *given);
/* Inference gives the case's types and shapes, or its error. */
int direct_infer(const op_case *c);
/* Inference accepts dimensions that are not known yet, and never gives a wrong extent for them. */
int direct_infer_open(const op_case *c);
/* The kernel gives the expected values: as a whole, in three ranges of items, with each strided operand in other
 * layouts, and in place if the op allows it; all with identical bits. */
int direct_run(const op_case *c);
/* If output 0 can be a view of operand 0, the view has the expected values. */
int direct_view(const op_case *c);

#endif
