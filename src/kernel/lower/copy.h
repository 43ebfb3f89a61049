/* Moving elements: ops whose result elements are operand elements, addressed by strides alone. */
#ifndef BERTH_KERNEL_LOWER_COPY_H
#define BERTH_KERNEL_LOWER_COPY_H

#include "kernel/lower/elements.h"

/* Element `at` of a space goes from `from` + at * from_stride of an operand to `to` + at * to_stride of a result. */
typedef struct berth__l_copy {
  uint32_t operand, result;
  uint32_t rank;
  const int64_t *dim, *from_stride, *to_stride;
  int64_t from, to;
} berth__l_copy;
/* One kernel, or none if there is nothing to copy, or everything is already in place. */
berth_status berth__l_copy_all(berth__lowering *l, const berth__l_copy *copy, berth_error *err);

/* The 32 bits of an element, and storing them to a result of the same type. The kernel does not depend on the type. */
berth__x berth__l_load_raw(const berth__lowering *l, berth__kernel *k, uint32_t i, berth__x place);
void berth__l_store_raw(const berth__lowering *l, berth__kernel *k, uint32_t i, berth__x place, berth__x value);

/* Whether the elements of an operand are already at the position of element `first` of result 0 and the following ones,
 * with the same strides. */
bool berth__l_is_placed(const berth__lowering *l, uint32_t operand, int64_t first);

/* transpose.c: whether neighbours in the result are not neighbours in the operand, so that a tile in shared memory pays
 * off; and the kernel for that. The space is joined: tensor 0 is the result, tensor 1 the operand. */
bool berth__l_is_transposed(const berth__lowering *l, const berth__l_space *space);
berth_status berth__l_transpose(berth__lowering *l, const berth__l_copy *copy, const berth__l_space *space,
                                berth_error *err);

#endif
