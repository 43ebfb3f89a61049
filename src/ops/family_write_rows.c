/* write_rows: x with the rows [position, position + n) along an axis replaced, at a position known only to a run.
 * x          any type and shape; the axis has `capacity` rows (default: the second to last axis, so that caches may be
 *              [heads, capacity, d] and [capacity, heads * d])
 * rows       like x, but with n <= capacity rows on the axis; f32 is allowed if x is f16 or bf16, and required if it is
 * in blocks (q8_0): they are rounded, or encoded, when they are written
 * position   i32 or i64: a scalar, or one per entry of the first axis ([B], unless that is the axis itself)
 * With a `ring` above 0 the rows past the end wrap to the start: row i goes to (position + i) modulo capacity. Above 1
 * it is the number of rows, up to its own, that a reader at a position needs: kernels ignore it.
 *
 * If the result overwrites x, only the rows are written. The number of items must not depend on that, because it is not
 * known when items are counted: in place, item (block, i) writes row i of the block; otherwise it makes share i of n
 * equal shares of the block's result, from x and from the rows in that share. */
#include <inttypes.h>

#include "base/blocks.h"
#include "base/half.h"
#include "base/storage.h"
#include "ops/copy.h"
#include "ops/line.h"
#include "ops/registry.h"
#include "ops/write_rows.h"

static const berth_attr attrs[] = {
    [BERTH__WRITE_ROWS_AXIS] = {.name = "axis", .kind = BERTH_ATTR_INT, .i = -2},
    [BERTH__WRITE_ROWS_RING] = {.name = "ring", .kind = BERTH_ATTR_INT},
};

/* ---- Shapes ---- */

static berth_status write_rows_check_position(const berth__infer *infer, uint32_t axis, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__WRITE_ROWS_X],
                     *position = &infer->in_shape[BERTH__WRITE_ROWS_POSITION];
  const berth_type type = infer->in_type[BERTH__WRITE_ROWS_POSITION];
  int64_t same;
  if (type != BERTH_I32 && type != BERTH_I64)
    return berth__fail(err, BERTH_INVALID, "operand %d has type %s, and a position has type i32 or i64",
                       BERTH__WRITE_ROWS_POSITION, berth_type_name(type));
  BERTH__TRY(berth__want_rank(infer, BERTH__WRITE_ROWS_POSITION, 0, 1, err));
  if (position->rank == 0 || position->dim[0] == 1 || !berth__dim_is_fixed(position->dim[0])) return BERTH_OK;
  if (axis == 0)
    return berth__fail(err, BERTH_INVALID,
                       "several positions stand for entries of the first axis, and that is the axis of the rows");
  return berth__same_dim(position->dim[0], x->dim[0], "positions and the first axis of the operand", &same, err);
}

/* Blocks must divide the lines of f32. */
static berth_status write_rows_check_types(const berth__infer *infer, berth_error *err) {
  const berth_type type = infer->in_type[BERTH__WRITE_ROWS_X];
  const bool is_narrow = type == BERTH_F16 || type == BERTH_BF16;
  if (is_narrow && infer->in_type[BERTH__WRITE_ROWS_ROWS] == BERTH_F32) return BERTH_OK;
  if (!berth__type_is_block(type))
    return berth__want_same_type(infer, BERTH__WRITE_ROWS_X, BERTH__WRITE_ROWS_ROWS, err);
  if (type != BERTH_Q8_0)
    return berth__fail(err, BERTH_UNSUPPORTED, "rows are written as q8_0, not as %s", berth_type_name(type));
  return berth__want_type(infer, BERTH__WRITE_ROWS_ROWS, BERTH_F32, err);
}

static berth_status write_rows_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__WRITE_ROWS_X], *rows = &infer->in_shape[BERTH__WRITE_ROWS_ROWS];
  uint32_t axis;
  BERTH__TRY(berth__want_rank(infer, BERTH__WRITE_ROWS_X, 1, BERTH_MAX_RANK, err));
  BERTH__TRY(write_rows_check_types(infer, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__WRITE_ROWS_ROWS, x->rank, x->rank, err));
  BERTH__TRY(berth__want_axis(infer->attrs[BERTH__WRITE_ROWS_AXIS].i, x->rank, &axis, err));
  if (axis == x->rank - 1 && berth__type_is_block(infer->in_type[BERTH__WRITE_ROWS_X]))
    return berth__fail(err, BERTH_INVALID, "the axis of the rows is the one that blocks lie along");
  for (uint32_t k = 0; k < x->rank; k++) {
    int64_t same;
    if (k != axis) BERTH__TRY(berth__same_dim(x->dim[k], rows->dim[k], "rows and the operand", &same, err));
  }
  if (berth__dim_is_fixed(x->dim[axis]) && berth__dim_is_fixed(rows->dim[axis]) && rows->dim[axis] > x->dim[axis])
    return berth__fail(err, BERTH_INVALID, "%" PRId64 " rows do not fit a capacity of %" PRId64, rows->dim[axis],
                       x->dim[axis]);
  BERTH__TRY(write_rows_check_position(infer, axis, err));
  infer->out_type[0] = infer->in_type[BERTH__WRITE_ROWS_X];
  infer->out_shape[0] = *x;
  return BERTH_OK;
}

/* ---- Kernel ---- */

void berth__write_rows_of(const berth_op_call *call, berth__write_rows *out) {
  const berth_tensor *x = &call->in[BERTH__WRITE_ROWS_X], *position = &call->in[BERTH__WRITE_ROWS_POSITION];
  const int64_t axis = call->attrs[BERTH__WRITE_ROWS_AXIS].i;
  *out = (berth__write_rows){.call = call, .outer = 1, .inner = 1, .n_positions = 1};
  out->axis = (uint32_t)(axis < 0 ? axis + x->rank : axis);
  out->ring = call->attrs[BERTH__WRITE_ROWS_RING].i != 0;
  out->capacity = x->dim[out->axis];
  out->n = call->in[BERTH__WRITE_ROWS_ROWS].dim[out->axis];
  for (uint32_t k = 0; k < out->axis; k++) out->outer *= x->dim[k];
  for (uint32_t k = out->axis + 1; k < x->rank; k++) out->inner *= x->dim[k];
  if (position->rank == 1 && position->dim[0] != 1) {
    out->n_positions = position->dim[0];
    out->position_stride = position->stride[0];
  }
}

/* Shares of a block's result, if it is a copy. */
static int64_t shares_of(const berth__write_rows *w) { return w->n > 0 ? w->n : 1; }

int64_t berth__write_rows_items(const berth_op_call *call) {
  berth__write_rows w;
  berth__write_rows_of(call, &w);
  return w.outer * shares_of(&w);
}

/* The position of a block's row 0. */
static int64_t write_first_row(const berth__write_rows *w, int64_t block) {
  const int64_t at = w->n_positions > 1 ? block / (w->outer / w->n_positions) * w->position_stride : 0;
  const int64_t position = berth__load_i64(&w->call->in[BERTH__WRITE_ROWS_POSITION], at);
  return w->ring ? position % w->capacity : position;
}

/* All positions are checked before anything is written, by every item. */
static berth_status check_positions(const berth__write_rows *w, berth_error *err) {
  for (int64_t i = 0; i < w->n_positions; i++) {
    const int64_t position = berth__load_i64(&w->call->in[BERTH__WRITE_ROWS_POSITION], i * w->position_stride);
    const bool fits = position <= w->capacity - w->n || (w->ring && w->capacity > 0);
    if (position < 0 || !fits)
      return berth__fail(err, BERTH_INVALID,
                         "%" PRId64 " rows at position %" PRId64 " do not fit a capacity of %" PRId64, w->n, position,
                         w->capacity);
  }
  return BERTH_OK;
}

static berth__copy write_rows_copy_of(const berth__write_rows *w, uint32_t operand) {
  const berth_tensor *in = &w->call->in[operand], *out = &w->call->out[0];
  berth__copy c = {.rank = in->rank, .from = in->data, .to = out->data, .element = berth_type_size(in->type)};
  memcpy(c.dim, in->dim, sizeof c.dim);
  memcpy(c.from_stride, in->stride, sizeof c.from_stride);
  memcpy(c.to_stride, out->stride, sizeof c.to_stride);
  return c;
}

/* Copies whole blocks if elements are in blocks, which are contiguous on both sides. */
static void write_rows_copy_x(const berth__write_rows *w, int64_t begin, int64_t end) {
  const berth_tensor *x = &w->call->in[BERTH__WRITE_ROWS_X], *out = &w->call->out[0];
  if (berth__type_is_block(x->type)) {
    const berth_storage storage = berth_type_storage(x->type);
    const uint64_t first = berth__storage_size(storage, (uint64_t)begin);
    memcpy((char *)out->data + first, (const char *)x->data + first,
           (size_t)(berth__storage_size(storage, (uint64_t)end) - first));
    return;
  }
  const berth__copy c = write_rows_copy_of(w, BERTH__WRITE_ROWS_X);
  berth__copy_range(&c, begin, end);
}

/* A line of n elements, `stride` apart, as 16-bit floats or as blocks. */
void berth__write_rows_encode(berth_type type, const float *from, int64_t stride, int64_t n, char *to) {
  const berth_storage storage = berth_type_storage(type);
  if (!berth__type_is_block(type)) {
    for (int64_t i = 0; i < n; i++) berth__convert_from_f32(type, to + i * storage.bytes, from + i * stride, 1);
    return;
  }
  if (stride == 1) {
    berth__blocks_encode(type, from, (uint64_t)n, to);
    return;
  }
  for (int64_t at = 0; at < n; at += storage.elements, to += storage.bytes) {
    float block[BERTH__BLOCK_MAX];
    for (int64_t i = 0; i < storage.elements; i++) block[i] = from[(at + i) * stride];
    berth__blocks_encode(type, block, storage.elements, to);
  }
}

/* Like put_elements, for rows of another type: line by line. If the axis of the rows is the last one, a line is an
 * element; blocks run along it, and are never cut. */
static void write_rows_put_encoded(const berth__write_rows *w, int64_t shift, int64_t begin, int64_t end) {
  const berth_tensor *rows = &w->call->in[BERTH__WRITE_ROWS_ROWS], *out = &w->call->out[0];
  const uint32_t last = rows->rank - 1, axes = w->axis == last ? rows->rank : last;
  const int64_t width = w->axis == last ? 1 : rows->dim[last];
  for (int64_t line = begin / width; line < end / width; line++) {
    int64_t from = 0, to = shift * out->stride[w->axis], rest = line;
    for (uint32_t k = axes; k-- > 0; rest /= rows->dim[k]) {
      from += rest % rows->dim[k] * rows->stride[k];
      to += rest % rows->dim[k] * out->stride[k];
    }
    w->encode(out->type, (const float *)rows->data + from, rows->stride[last], width,
              (char *)out->data + berth__storage_size(berth_type_storage(out->type), (uint64_t)to));
  }
}

/* Elements [begin, end) of the rows; row i goes to row i + shift. */
static void put_elements(const berth__write_rows *w, int64_t shift, int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (w->call->in[BERTH__WRITE_ROWS_ROWS].type != w->call->out[0].type) {
    write_rows_put_encoded(w, shift, begin, end);
    return;
  }
  berth__copy c = write_rows_copy_of(w, BERTH__WRITE_ROWS_ROWS);
  c.to = berth__element(c.to, shift * w->call->out[0].stride[w->axis], c.element);
  berth__copy_range(&c, begin, end);
}

/* Rows [begin, end) of a block: those before the end of the ring, and those after it. */
static void put_rows(const berth__write_rows *w, int64_t block, int64_t begin, int64_t end) {
  const int64_t first = write_first_row(w, block), wrapped = w->capacity - first; /* the first row that wraps */
  const int64_t at = block * w->n, middle = wrapped < begin ? begin : wrapped > end ? end : wrapped;
  put_elements(w, first, (at + begin) * w->inner, (at + middle) * w->inner);
  put_elements(w, first - w->capacity, (at + middle) * w->inner, (at + end) * w->inner);
}

/* The rows of a block that go to rows [low, high) of its result: first those past the end of the ring. */
static void put_into(const berth__write_rows *w, int64_t block, int64_t low, int64_t high) {
  const int64_t first = write_first_row(w, block), at = block * w->n;
  for (int64_t shift = first - w->capacity; shift <= first; shift += w->capacity) {
    const int64_t begin = shift < low ? low - shift : 0, end = high - shift < w->n ? high - shift : w->n;
    put_elements(w, shift, (at + begin) * w->inner, (at + end) * w->inner);
  }
}

static void write_in_place(const berth__write_rows *w) {
  const berth_op_call *call = w->call;
  const bool is_one_run = w->n_positions == 1 && write_first_row(w, 0) + w->n <= w->capacity;
  if (w->n == 0) return;
  if (is_one_run) {
    put_elements(w, write_first_row(w, 0), call->begin * w->inner, call->end * w->inner);
    return;
  }
  for (int64_t item = call->begin; item < call->end;) {
    const int64_t block = item / w->n, row = item % w->n;
    const int64_t end = call->end - item < w->n - row ? row + call->end - item : w->n;
    put_rows(w, block, row, end);
    item += end - row;
  }
}

/* The first row of an item's share, counted over the results of all blocks. */
static int64_t share_begin(const berth__write_rows *w, int64_t item) {
  const int64_t shares = shares_of(w);
  return item / shares * w->capacity + item % shares * w->capacity / shares;
}

static void write_copy(const berth__write_rows *w) {
  const int64_t begin = share_begin(w, w->call->begin), end = share_begin(w, w->call->end);
  write_rows_copy_x(w, begin * w->inner, end * w->inner);
  for (int64_t at = begin; at < end;) {
    const int64_t block = at / w->capacity, low = at % w->capacity;
    const int64_t high = end - at < w->capacity - low ? low + end - at : w->capacity;
    put_into(w, block, low, high);
    at += high - low;
  }
}

berth_status berth__write_rows_run(const berth_op_call *call, berth__write_rows_encode_fn encode, berth_error *err) {
  berth__write_rows w;
  berth__write_rows_of(call, &w);
  w.encode = encode;
  if (berth__count(&call->out[0]) == 0) return BERTH_OK;
  BERTH__TRY(check_positions(&w, err));
  if (call->in[BERTH__WRITE_ROWS_X].data == call->out[0].data)
    write_in_place(&w);
  else
    write_copy(&w);
  return BERTH_OK;
}

static berth_status write_rows_kernel(const berth_op_call *call, berth_error *err) {
  return berth__write_rows_run(call, berth__write_rows_encode, err);
}

const berth__family berth__family_write_rows = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = write_rows_infer,
    .items = berth__write_rows_items,
    .kernel = write_rows_kernel,
    .takes_blocks = 1u << BERTH__WRITE_ROWS_X,
};
