/* Runs a case on the op itself: inference and the reference kernel, without a graph, plan or device. */
#ifndef BERTH_TESTS_OPS_DIRECT_H
#define BERTH_TESTS_OPS_DIRECT_H

#include "cases.h"
#include "ops/op.h"

/* The attributes that a case gives, of the kinds that the op declares: [1, 2] may mean dimensions, and 1 a float. */
typedef struct op_attrs {
  berth_attr attrs[OP_CASE_MAX]; /* as many as the case has */
  berth_dim dims[OP_CASE_MAX][64];
} op_attrs;

/* Each returns 1 when the case holds; otherwise 0 and one line on stderr that names the case. */

int op_case_attrs(const op_case *c, const berth__op *op, op_attrs *given);
/* Inference gives the case's types and shapes, or its error. */
int direct_infer(const op_case *c);
/* Inference lets dimensions through that are not known yet, and never claims a wrong extent for them. */
int direct_infer_open(const op_case *c);
/* The kernel gives the expected values: whole, in three ranges of items, with each operand that may be strided laid out
 * in other ways, and in place where the op allows that; all of these to the last bit the same. */
int direct_run(const op_case *c);
/* Where output 0 can be a view of operand 0, the view shows the expected values. */
int direct_view(const op_case *c);

#endif
