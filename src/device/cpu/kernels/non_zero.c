/* non_zero: the positions of nonzero elements of a line are collected without branches, some elements at a time; the
 * indices of the outer axes are the same for the whole line. */
#include "device/cpu/kernels/vec.h"
#include "ops/operand.h"

#define PIECE 256 /* elements */

/* The sign of a zero does not matter, and NaN is nonzero. */
#define GATHER_SET(name, word, sign)                                                          \
  static int64_t gather_set_##name(const char *from, int64_t n, bool is_float, int32_t *to) { \
    const word kept = (word) ~(is_float ? (word)(sign) : (word)0);                            \
    int64_t count = 0;                                                                        \
    for (int64_t i = 0; i < n; i++) {                                                         \
      word x; /* weights may be unaligned */                                                  \
      memcpy(&x, from + (size_t)i * sizeof x, sizeof x);                                      \
      to[count] = (int32_t)i;                                                                 \
      count += (x & kept) != 0;                                                               \
    }                                                                                         \
    return count;                                                                             \
  }
GATHER_SET(8, uint8_t, 0)
GATHER_SET(16, uint16_t, 0x8000)
GATHER_SET(32, uint32_t, 0x80000000)
GATHER_SET(64, uint64_t, 0x8000000000000000)

static int64_t gather_set(const berth_tensor *x, int64_t index, int64_t n, int32_t *to) {
  const bool is_float = berth__type_is_float(x->type);
  const size_t size = berth_type_size(x->type);
  const char *from = (const char *)x->data + (size_t)index * size;
  switch (size) {
    case 1: return gather_set_8(from, n, false, to);
    case 2: return gather_set_16(from, n, is_float, to);
    case 4: return gather_set_32(from, n, is_float, to);
    default: return gather_set_64(from, n, is_float, to);
  }
}

static bool non_zero_kernel_takes(const berth_op_call *call) { return berth__is_contiguous(&call->in[0]); }

/* The next line of x: an index for every axis but the last. */
static void next_line(const berth_tensor *x, int64_t *index) {
  for (uint32_t axis = x->rank - 1; axis-- > 0;) {
    if (++index[axis] < x->dim[axis]) return;
    index[axis] = 0;
  }
}

static berth_status non_zero_kernel_run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[0];
  const int64_t n = berth__count(x), columns = call->out[0].dim[1], length = x->rank > 0 ? x->dim[x->rank - 1] : 0;
  int64_t *out = call->out[0].data, column = 0, index[BERTH_MAX_RANK] = {0};
  int32_t found[PIECE + 1];
  (void)err;
  for (int64_t line = 0; length > 0 && line < n && column < columns; line += length, next_line(x, index)) {
    const int64_t first = column;
    for (int64_t at = 0; at < length && column < columns; at += PIECE) {
      int64_t count = gather_set(x, line + at, length - at < PIECE ? length - at : PIECE, found);
      if (count > columns - column) count = columns - column;
      int64_t *to = out + (x->rank - 1) * columns + column;
      for (int64_t i = 0; i < count; i++) to[i] = at + found[i];
      column += count;
    }
    for (uint32_t axis = 0; axis + 1 < x->rank; axis++)
      for (int64_t i = first; i < column; i++) out[axis * columns + i] = index[axis];
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_non_zero)[] = {
    {.name = "non_zero", .code = BERTH__OP_non_zero, .takes = non_zero_kernel_takes, .run = non_zero_kernel_run},
    {0},
};
