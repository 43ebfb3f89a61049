/* Lists that an op takes as an attribute, or as an operand if they are not known when the graph is built. */
#ifndef BERTH_OPS_OPERAND_H
#define BERTH_OPS_OPERAND_H

#include "ops/op.h"

#define BERTH__LIST_MAX (2 * BERTH_MAX_RANK)

typedef struct berth__list {
  bool given; /* as an operand, or as a non-empty attribute */
  bool known; /* false: an operand whose elements are not known yet, but its count is */
  const char *name;
  uint32_t count;
  int64_t at[BERTH__LIST_MAX];
} berth__list;

/* True if the operand is given. */
static inline bool berth__infer_has(const berth__infer *infer, uint32_t operand) {
  return operand < infer->n_in && infer->in_type[operand] != BERTH_TYPE_NONE;
}
/* A packed weight: flushes numbers below the smallest normal f32 to 0. Products with subnormals are a hundred times
 * slower on many machines, networks after long training have them, and no sum of normal size is affected. */
static inline double berth__packed_weight(double x) {
  const double rounded = (double)(float)x;
  return rounded > -0x1p-126 && rounded < 0x1p-126 ? 0 : x;
}

static inline bool berth__call_has(const berth_op_call *call, uint32_t operand) {
  return operand < call->n_in && call->in[operand].type != BERTH_TYPE_NONE;
}
/* The elements of an operand as a flat tensor; data is NULL as long as they are unknown. */
berth_tensor berth__infer_tensor(const berth__infer *infer, uint32_t operand);

/* The same, but if they are unknown and bounds are requested: their upper bounds. */
berth_tensor berth__infer_most(const berth__infer *infer, uint32_t operand);

/* The operand's elements, or the INTS attribute if it is omitted. Fails if it is not a list of i32 or i64, if its
 * length is not known, or if it has more than BERTH__LIST_MAX entries. */
berth_status berth__infer_list(const berth__infer *infer, uint32_t attr, uint32_t operand, berth__list *out,
                               berth_error *err);
/* The same for entries that make extents larger: if they are unknown and bounds are requested, their upper bounds count
 * as known. */
berth_status berth__infer_most_list(const berth__infer *infer, uint32_t attr, uint32_t operand, berth__list *out,
                                    berth_error *err);
/* Sets the entries of an unknown list to their upper bounds; false if these are unknown, or if an entry may be
 * negative, which has a different meaning in many lists. */
bool berth__infer_naturals(const berth__infer *infer, uint32_t operand, berth__list *list);
/* The same for a DIMS attribute: names are kept in `dims`, and *out has only the count. At most BERTH_MAX_RANK. Unknown
 * entries in a partly known list become the dimension "?". */
berth_status berth__infer_dims(const berth__infer *infer, uint32_t attr, uint32_t operand, berth_dim *dims,
                               berth__list *out, berth_error *err);
/* The same when a kernel runs; inference has checked its length. */
void berth__call_list(const berth_op_call *call, uint32_t attr, uint32_t operand, berth__list *out);
void berth__attr_list(const berth_attr *attr, berth__list *out);
/* Makes the axes of a list non-negative and refuses those out of range and duplicates: bit k of *mask stands for axis
 * k. An unknown list is unchanged. */
berth_status berth__list_axes(berth__list *axes, uint32_t rank, uint32_t *mask, berth_error *err);

#endif
