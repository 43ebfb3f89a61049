/* int8 convolutions with channels last: shared by qconv_last and qdepthwise. */
#ifndef BERTH_OPS_BYTES_LAST_H
#define BERTH_OPS_BYTES_LAST_H

#include "ops/bytes.h"
#include "ops/conv_last.h"

/* Computes the sum for one output of one pixel. */
typedef int64_t (*berth__bytes_sum)(const berth__bytes *b, const berth__last *last, const berth__last_pixel *pixel,
                                    int64_t output);
/* The reference kernel around it: an item is a pixel of the result. */
berth_status berth__bytes_convolve(const berth_op_call *call, berth__bytes_sum sum, berth_error *err);

#endif
