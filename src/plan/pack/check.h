/* The packer's independent validator: shares neither code nor method with the solver. */
#ifndef BERTH_PLAN_PACK_CHECK_H
#define BERTH_PLAN_PACK_CHECK_H

#include "base/context.h"

/* Checks the buffers index[0..n_index) (all n if index is NULL) at their offsets. Reports two that live at the same
 * time and share a byte: *clash is true and first/second name them. A misaligned offset, or one that differs from a
 * fixed offset, is a clash of a buffer with itself. *size is the end of the highest buffer. Ends must not overflow. */
typedef struct berth__pack_verdict {
  int clash;
  uint32_t first, second;
  uint64_t size;
} berth__pack_verdict;

berth_status berth__pack_check(berth_context *ctx, const berth_pack_buffer *buffers, const uint32_t *index,
                               size_t n_index, const uint64_t *offsets, berth__pack_verdict *verdict, berth_error *err);

#endif
