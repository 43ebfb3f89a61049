/* Products of bytes (ops/bytes.h) as tiles: sums on integers, then a scale, the tail, and bytes again. */
#ifndef BERTH_LOOP_LOWER_BYTES_H
#define BERTH_LOOP_LOWER_BYTES_H

#include "loop/lower/tile.h"

/* Sets zero points and the end of the sums, and lowers. What belongs to a column of the result stands at
 * batch * of_batch + column * of_line. */
berth_status berth__tile_lower_bytes(berth__tile *tile, int64_t of_batch, int64_t of_line, berth_error *err);

#endif
