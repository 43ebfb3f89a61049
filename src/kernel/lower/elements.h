/* Element-wise kernels: one thread per result element. */
#ifndef BERTH_KERNEL_LOWER_ELEMENTS_H
#define BERTH_KERNEL_LOWER_ELEMENTS_H

#include "kernel/lower.h"

/* Positions in several tensors that are traversed together: axes that are contiguous in all of them are joined. */
#define BERTH__SPACE_TENSORS 16u
typedef struct berth__l_space {
  uint32_t rank, n;
  int64_t dim[BERTH_MAX_RANK];
  int64_t stride[BERTH__SPACE_TENSORS][BERTH_MAX_RANK];
} berth__l_space;
void berth__l_space_of(berth__l_space *space, uint32_t rank, const int64_t *dim);
uint32_t berth__l_space_add(berth__l_space *space, const int64_t *stride); /* the tensor's number; before the join */
void berth__l_space_join(berth__l_space *space);
int64_t berth__l_space_count(const berth__l_space *space);
berth__x berth__l_space_place(berth__kernel *k, const berth__l_space *space, uint32_t tensor, const berth__x *at);

/* Computes an element of result 0 from the operands' elements at its position, all in their number types. Operands are
 * broadcast; omitted ones are BERTH__X_NONE. */
typedef berth__x (*berth__l_element_fn)(const berth__lowering *l, berth__kernel *k, const berth__x *in,
                                        const void *state);
berth_status berth__l_elements(berth__lowering *l, berth__l_element_fn fn, const void *state, berth_error *err);

/* arithmetic.c: binary ops, like the ops of that name; `type` is that of the operands. */
berth__x berth__l_binary(berth__kernel *k, berth__op_code op, berth__x a, berth__x b, berth_type type);
berth__x berth__l_compare(berth__kernel *k, berth__op_code op, berth__x a, berth__x b);
berth__x berth__l_clamp(berth__kernel *k, berth__x x, berth__x low, berth__x high); /* NaN stays NaN */
/* cast.c: the range of an integer type, limited to 32 bits. */
void berth__l_limits(berth_type type, int64_t *low, int64_t *high);
/* f32 to an integer type, toward 0 and clamped; NaN becomes 0. The result has the type's number. */
berth__x berth__l_saturate(berth__kernel *k, berth__x x, berth_type type);

#endif
