/* non_zero: the indices of the elements other than 0, one column each, in order. The number of columns depends on the
 * data; if only a run knows it, as many are planned as there are elements. */
#include "ops/operand.h"
#include "ops/registry.h"

static bool is_set(const berth_tensor *x, int64_t i) {
  return berth__type_is_float(x->type) ? berth__load_f64(x, i) != 0 : berth__load_i64(x, i) != 0;
}

/* Compares bits, since a run counts before it plans its result: floats are 0 regardless of their sign. */
#define COUNT_SET(name, word)                                                   \
  static int64_t count_set_##name(const char *data, int64_t n, uint64_t sign) { \
    const word kept = (word) ~(word)sign;                                       \
    int64_t count = 0;                                                          \
    for (int64_t i = 0; i < n; i++) {                                           \
      word x; /* constants may be unaligned */                                  \
      memcpy(&x, data + (size_t)i * sizeof x, sizeof x);                        \
      count += (x & kept) != 0;                                                 \
    }                                                                           \
    return count;                                                               \
  }
COUNT_SET(8, uint8_t)
COUNT_SET(16, uint16_t)
COUNT_SET(32, uint32_t)
COUNT_SET(64, uint64_t)

static int64_t count_set(const berth_tensor *x, int64_t n) {
  const size_t size = berth_type_size(x->type);
  const uint64_t sign = berth__type_is_float(x->type) ? (uint64_t)1 << (8 * size - 1) : 0;
  switch (size) {
    case 1: return count_set_8(x->data, n, sign);
    case 2: return count_set_16(x->data, n, sign);
    case 4: return count_set_32(x->data, n, sign);
    default: return count_set_64(x->data, n, sign);
  }
}

static berth_status non_zero_infer(berth__infer *infer, berth_error *err) {
  const berth_tensor x = berth__infer_tensor(infer, 0);
  int64_t count = 0;
  (void)err;
  infer->out_type[0] = BERTH_I64;
  infer->out_shape[0] = (berth__shape){.rank = 2, .dim = {infer->in_shape[0].rank, BERTH__DIM_UNKNOWN}};
  if (!berth__shape_count(&infer->in_shape[0], &count) || (x.data == NULL && !infer->wants_bounds)) return BERTH_OK;
  infer->out_shape[0].dim[1] = x.data == NULL ? count : count_set(&x, count);
  return BERTH_OK;
}

static berth_status non_zero_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[0];
  const int64_t n = berth__count(x), columns = call->out[0].dim[1];
  int64_t *out = call->out[0].data, column = 0;
  (void)err;
  for (int64_t i = 0; i < n && column < columns; i++) {
    if (!is_set(x, i)) continue;
    int64_t rest = i;
    for (uint32_t axis = x->rank; axis-- > 0; rest /= x->dim[axis]) out[axis * columns + column] = rest % x->dim[axis];
    column++;
  }
  return BERTH_OK;
}

const berth__family berth__family_non_zero = {
    .infer = non_zero_infer, .kernel = non_zero_kernel, .valued = 1u, .bounded = 1u};
