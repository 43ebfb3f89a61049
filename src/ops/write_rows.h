/* A call of `write_rows` as its kernels see it. */
#ifndef BERTH_OPS_WRITE_ROWS_H
#define BERTH_OPS_WRITE_ROWS_H

#include "ops/op.h"

/* Converts a line of n elements, `stride` apart, to another type: f16, bf16, or whole blocks. */
typedef void (*berth__write_rows_encode_fn)(berth_type type, const float *from, int64_t stride, int64_t n, char *to);

/* x is [outer, capacity, inner] around the axis, rows [outer, n, inner]. */
typedef struct berth__write_rows {
  const berth_op_call *call;
  uint32_t axis;
  bool ring;
  int64_t outer, capacity, n, inner;
  int64_t n_positions, position_stride; /* each position applies to outer / n_positions blocks */
  berth__write_rows_encode_fn encode;
} berth__write_rows;

void berth__write_rows_of(const berth_op_call *call, berth__write_rows *out);
/* Work items: as many as rows, whether x is copied or not. */
int64_t berth__write_rows_items(const berth_op_call *call);
void berth__write_rows_encode(berth_type type, const float *from, int64_t stride, int64_t n, char *to);
/* Lines that change their type are converted by `encode`, with the same result as berth__write_rows_encode. */
berth_status berth__write_rows_run(const berth_op_call *call, berth__write_rows_encode_fn encode, berth_error *err);

#endif
