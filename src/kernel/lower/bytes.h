/* int8 products (ops/bytes.h) as tiles: sums on integers, then a scale, the epilogue, and bytes again. */
#ifndef BERTH_KERNEL_LOWER_BYTES_H
#define BERTH_KERNEL_LOWER_BYTES_H

#include "kernel/lower/tile.h"

/* Sets zero points and the end of the sums, and lowers. What belongs to a column of the result stands at
 * batch * of_batch + column * of_line. */
berth_status berth__tile_lower_bytes(berth__tile *tile, int64_t of_batch, int64_t of_line, berth_error *err);

/* depthwise_words.c: whether four channels are a word everywhere; and the kernel for that, where finish is set. */
bool berth__tile_has_channel_words(const berth__tile *tile);
berth_status berth__tile_channel_words(berth__tile *tile, berth_error *err);

#endif
