/* Op cases: operands and expected results of an op, as text. The expected values come from an independent source: see
 * make_cases.py. Files are tests/ops/cases/NAME.case; a line starting with # is a comment.
 *
 *   case add_broadcast
 *   op add
 *   attr axis = 1              also [1, 2], 1.5, [1.5, inf] and "same"
 *   in f32[2,3] = 1 2 3 4 5 6
 * in none                    an omitted operand
 * in q8_0[1,32] = 0 60 1 2   elements in blocks: all their bytes
 *   out f32[2,3] = 1 nan -inf 4 0x1p-3 6
 *   tol 1e-6 1e-6              absolute, relative; without this line values must be equal
 *   end
 *
 * With `error "part of the message"` instead of out, inference must fail with that message. */
#ifndef BERTH_TESTS_OPS_CASES_H
#define BERTH_TESTS_OPS_CASES_H

#include "berth/berth.h"

#define OP_CASE_MAX 16 /* attributes, operands and outputs of one case */

typedef struct op_tensor {
  berth_type type; /* BERTH_TYPE_NONE: omitted */
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  int64_t count;
  size_t size; /* bytes */
  void *data;  /* contiguous */
} op_tensor;

typedef struct op_case {
  char *name, *op;
  char *file;
  int line;
  berth_attr attrs[OP_CASE_MAX];
  uint32_t n_attrs;
  op_tensor in[OP_CASE_MAX], out[OP_CASE_MAX];
  uint32_t n_in, n_out;
  char *error; /* NULL: the case succeeds */
  double absolute, relative;
} op_case;

typedef struct op_cases {
  op_case *items;
  size_t count, capacity;
} op_cases;

/* Adds every case of every *.case file in the folder, sorted by name. A file that cannot be read or is invalid is
 * reported on stderr and returns 0; otherwise 1. */
int op_cases_load(op_cases *cases, const char *folder);
void op_cases_free(op_cases *cases);
/* The folder of the case files: under $BERTH_SRC, or under the current folder. Valid until the next call. */
const char *op_cases_folder(void);

/* 1 if `got` (elements of want's type, contiguous) is within the case's tolerance of `want`. Otherwise *element is the
 * first that is not. NaN equals NaN, and 0 equals -0. */
int op_case_matches(const op_case *c, const op_tensor *want, const void *got, int64_t *element);
double op_element(berth_type type, const void *data, int64_t element); /* as a double, for messages */

#endif
