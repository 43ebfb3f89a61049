/* int8 products (ops/bytes.h) as tiles: integer sums, then a scale, the epilogue, and conversion to bytes. */
#ifndef BERTH_KERNEL_LOWER_BYTES_H
#define BERTH_KERNEL_LOWER_BYTES_H

#include "kernel/lower/tile.h"

/* Sets the zero points and the epilogue, and lowers. What belongs to a column of the result is at batch * of_batch +
 * column * of_line. */
berth_status berth__tile_lower_bytes(berth__tile *tile, int64_t of_batch, int64_t of_line, berth_error *err);

/* depthwise_words.c: whether four channels are one word in all operands; and the kernel for that case, with finish
 * set. */
bool berth__tile_has_channel_words(const berth__tile *tile);
berth_status berth__tile_channel_words(berth__tile *tile, berth_error *err);

#endif
