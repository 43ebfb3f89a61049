/* Blocks of products of f64 and of integers of 32 and 64 bits, which wrap. */
#include "device/cpu/kernels/wide.h"
#include "device/cpu/kernels/inlined.h"

#define DEFINE(name, element)                                                                                       \
  typedef element wide_##name __attribute__((vector_size(WIDE_BYTES)));                                             \
  enum {                                                                                                            \
    LANES_##name = WIDE_BYTES / (int)sizeof(element)                                                                \
  };                                                                                                                \
  INLINED void wide_rows_##name(const wide_block *w, const int n_rows) {                                            \
    const size_t bytes = (size_t)w->columns * sizeof(element);                                                      \
    const element *b = w->b;                                                                                        \
    wide_##name sum[WIDE_ROWS][2];                                                                                  \
    memset(sum, 0, sizeof sum);                                                                                     \
    for (int r = 0; r < n_rows && w->adds; r++) memcpy(sum[r], (const element *)w->out + r * w->out_stride, bytes); \
    for (int64_t k = 0; k < w->depth; k++, b += w->b_step) {                                                        \
      wide_##name left, right;                                                                                      \
      memcpy(&left, b, sizeof left);                                                                                \
      memcpy(&right, b + LANES_##name, sizeof right);                                                               \
      UNROLL_FEW for (int r = 0; r < n_rows; r++) {                                                                 \
        const element by = ((const element *)w->row[r])[k * w->a_step];                                             \
        sum[r][0] += by * left;                                                                                     \
        sum[r][1] += by * right;                                                                                    \
      }                                                                                                             \
    }                                                                                                               \
    for (int r = 0; r < n_rows; r++) memcpy((element *)w->out + r * w->out_stride, sum[r], bytes);                  \
  }                                                                                                                 \
  static void wide_block_##name(const wide_block *w, int64_t n_rows) {                                              \
    switch (n_rows) {                                                                                               \
      case 1: wide_rows_##name(w, 1); break;                                                                        \
      case 2: wide_rows_##name(w, 2); break;                                                                        \
      case 3: wide_rows_##name(w, 3); break;                                                                        \
      default: wide_rows_##name(w, WIDE_ROWS); break;                                                               \
    }                                                                                                               \
  }

DEFINE(f64, double)
DEFINE(u32, uint32_t)
DEFINE(u64, uint64_t)

#define PACK(name, element)                                                                                 \
  static void wide_pack_##name(void *to, const void *from, int64_t b_step, int64_t b_column, int64_t depth, \
                               int64_t columns) {                                                           \
    element *o = to;                                                                                        \
    const element *b = from;                                                                                \
    for (int64_t k = 0; k < depth; k++, o += 2 * LANES_##name, b += b_step)                                 \
      for (int64_t i = 0; i < 2 * LANES_##name; i++) o[i] = i < columns ? b[i * b_column] : 0;              \
  }

PACK(f64, double)
PACK(u32, uint32_t)
PACK(u64, uint64_t)

void wide_run(berth_type type, const wide_block *w, int64_t n_rows) {
  if (type == BERTH_F64)
    wide_block_f64(w, n_rows);
  else
    (berth_type_size(type) == 4 ? wide_block_u32 : wide_block_u64)(w, n_rows);
}

void wide_pack(berth_type type, void *to, const void *from, int64_t b_step, int64_t b_column, int64_t depth,
               int64_t columns) {
  if (type == BERTH_F64)
    wide_pack_f64(to, from, b_step, b_column, depth, columns);
  else
    (berth_type_size(type) == 4 ? wide_pack_u32 : wide_pack_u64)(to, from, b_step, b_column, depth, columns);
}
