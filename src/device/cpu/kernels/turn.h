/* Making strided elements contiguous: a rectangle is transposed in squares, in registers, or a line is gathered. */
#ifndef BERTH_DEVICE_CPU_KERNELS_TURN_H
#define BERTH_DEVICE_CPU_KERNELS_TURN_H

#include "device/cpu/kernels/vec.h"

#define turn_block BERTH__PER_ISA(berth__turn_block)
#define turn_together BERTH__PER_ISA(berth__turn_together)

/* to[w * to_stride + k] = from[k * from_stride + w] for w < width and k < length; strides in elements of 1, 2, 4 or 8
 * bytes. */
void turn_block(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t width, int64_t length,
                size_t element);
/* to[i] = from[i * step] for i < n; to and from must not overlap; elements as above. */
void turn_together(void *to, const void *from, int64_t step, int64_t n, size_t element);

#endif
