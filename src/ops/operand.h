/* Lists that an op takes as an attribute, or as an operand where they are not known when the graph is built. */
#ifndef BERTH_OPS_OPERAND_H
#define BERTH_OPS_OPERAND_H

#include "ops/op.h"

#define BERTH__LIST_MAX (2 * BERTH_MAX_RANK)

typedef struct berth__list {
  bool given; /* as an operand, or as an attribute that is not empty */
  bool known; /* false: an operand whose elements are not known yet; its count is */
  const char *name;
  uint32_t count;
  int64_t at[BERTH__LIST_MAX];
} berth__list;

/* True where the operand is there. */
static inline bool berth__infer_has(const berth__infer *infer, uint32_t operand) {
  return operand < infer->n_in && infer->in_type[operand] != BERTH_TYPE_NONE;
}
/* A packed weight: what is too small for a normal f32 is 0. Products with such numbers are a hundred times slower on
 * many machines, networks that were trained long have them, and no sum of normal size shows the difference. */
static inline double berth__packed_weight(double x) {
  const double rounded = (double)(float)x;
  return rounded > -0x1p-126 && rounded < 0x1p-126 ? 0 : x;
}

static inline bool berth__call_has(const berth_op_call *call, uint32_t operand) {
  return operand < call->n_in && call->in[operand].type != BERTH_TYPE_NONE;
}
/* The elements of an operand as a flat tensor; data is NULL while they are not known. */
berth_tensor berth__infer_tensor(const berth__infer *infer, uint32_t operand);

/* The same, but where they are not known and bounds are wanted: what they never exceed. */
berth_tensor berth__infer_most(const berth__infer *infer, uint32_t operand);

/* What the operand says, or the INTS attribute where it is left out. Fails when it is no list of i32 or i64, when its
 * length is not known, and when it has more than BERTH__LIST_MAX entries. */
berth_status berth__infer_list(const berth__infer *infer, uint32_t attr, uint32_t operand, berth__list *out,
                               berth_error *err);
/* The same for entries that make extents larger: where they are not known and bounds are wanted, what they never
 * exceed counts as known. */
berth_status berth__infer_most_list(const berth__infer *infer, uint32_t attr, uint32_t operand, berth__list *out,
                                    berth_error *err);
/* Sets the entries of a list that is not known to what they never exceed; false where that is not known, or where an
 * entry may be negative, which means something else in many lists. */
bool berth__infer_naturals(const berth__infer *infer, uint32_t operand, berth__list *list);
/* That for a DIMS attribute: names are kept in `dims`, and *out has the count alone. At most BERTH_MAX_RANK.
 * Entries that are not known in a list of which others are stand for the dimension "?". */
berth_status berth__infer_dims(const berth__infer *infer, uint32_t attr, uint32_t operand, berth_dim *dims,
                               berth__list *out, berth_error *err);
/* The same when a kernel runs; what inference let through has a length that fits. */
void berth__call_list(const berth_op_call *call, uint32_t attr, uint32_t operand, berth__list *out);
void berth__attr_list(const berth_attr *attr, berth__list *out);
/* Makes the axes of a list non-negative and refuses those out of range and repeated ones: bit k of *mask stands for
 * axis k. A list that is not known is left alone. */
berth_status berth__list_axes(berth__list *axes, uint32_t rank, uint32_t *mask, berth_error *err);

#endif
