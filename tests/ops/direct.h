/* Runs a case on the op itself: inference and the reference kernel, without a graph, plan or device. */
#ifndef BERTH_TESTS_OPS_DIRECT_H
#define BERTH_TESTS_OPS_DIRECT_H

#include "cases.h"
#include "ops/op.h"

/* Each returns 1 when the case holds; otherwise 0 and one line on stderr that names the case. */

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
