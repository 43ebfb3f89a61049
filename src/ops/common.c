/* Shared by families: checks of types, ranks and axes, arithmetic on dimensions, and iteration over elements. */
#include <inttypes.h>
#include <stdio.h>

#include "base/math.h"
#include "base/storage.h"
#include "ops/op.h"

/* ---- Types ---------------------------------------------------------------------------------------------------- */

bool berth__type_is_float(berth_type type) {
  return type == BERTH_F32 || type == BERTH_F64 || type == BERTH_F16 || type == BERTH_BF16;
}

bool berth__type_is_int(berth_type type) {
  return type == BERTH_I8 || type == BERTH_U8 || type == BERTH_I16 || type == BERTH_U16 || type == BERTH_I32 ||
         type == BERTH_U32 || type == BERTH_I64;
}

static berth_status fail_type(const berth__infer *infer, uint32_t operand, const char *expected, berth_error *err) {
  return berth__fail(err, BERTH_INVALID, "operand %" PRIu32 " has type %s, expected %s", operand,
                     berth_type_name(infer->in_type[operand]), expected);
}

berth_status berth__want_type(const berth__infer *infer, uint32_t operand, berth_type type, berth_error *err) {
  if (infer->in_type[operand] == type) return BERTH_OK;
  return fail_type(infer, operand, berth_type_name(type), err);
}

berth_status berth__want_same_type(const berth__infer *infer, uint32_t a, uint32_t b, berth_error *err) {
  if (infer->in_type[a] == infer->in_type[b]) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "operand %" PRIu32 " has type %s, expected %s as operand %" PRIu32 " has", b,
                     berth_type_name(infer->in_type[b]), berth_type_name(infer->in_type[a]), a);
}

berth_status berth__want_float(const berth__infer *infer, uint32_t operand, berth_error *err) {
  if (berth__type_is_float(infer->in_type[operand])) return BERTH_OK;
  return fail_type(infer, operand, "a float type", err);
}

berth_status berth__want_numeric(const berth__infer *infer, uint32_t operand, berth_error *err) {
  berth_type type = infer->in_type[operand];
  if (berth__type_is_float(type) || berth__type_is_int(type)) return BERTH_OK;
  return fail_type(infer, operand, "a float or integer type", err);
}

berth_status berth__want_bits(const berth__infer *infer, uint32_t operand, berth_error *err) {
  berth_type type = infer->in_type[operand];
  if (type == BERTH_BOOL || type == BERTH_U64 || berth__type_is_int(type)) return BERTH_OK;
  return fail_type(infer, operand, "bool or an integer type", err);
}

void berth__int_limits(berth_type type, int64_t *low, int64_t *high) {
  *low = 0;
  switch (type) {
    case BERTH_I8: *low = INT8_MIN, *high = INT8_MAX; return;
    case BERTH_U8: *high = UINT8_MAX; return;
    case BERTH_I16: *low = INT16_MIN, *high = INT16_MAX; return;
    case BERTH_U16: *high = UINT16_MAX; return;
    case BERTH_I32: *low = INT32_MIN, *high = INT32_MAX; return;
    case BERTH_U32: *high = UINT32_MAX; return;
    case BERTH_BOOL: *high = 1; return;
    default: *low = INT64_MIN, *high = INT64_MAX; return;
  }
}

/* ---- Shapes --------------------------------------------------------------------------------------------------- */

berth_status berth__want_rank(const berth__infer *infer, uint32_t operand, uint32_t min, uint32_t max,
                              berth_error *err) {
  uint32_t rank = infer->in_shape[operand].rank;
  char shape[BERTH__SHAPE_TEXT];
  if (rank >= min && rank <= max) return BERTH_OK;
  berth__shape_text(&infer->in_shape[operand], shape);
  if (min == max)
    return berth__fail(err, BERTH_INVALID, "operand %" PRIu32 " has shape %s, expected rank %" PRIu32, operand, shape,
                       min);
  return berth__fail(err, BERTH_INVALID,
                     "operand %" PRIu32 " has shape %s, expected a rank from %" PRIu32 " to %" PRIu32, operand, shape,
                     min, max);
}

berth_status berth__want_axis(int64_t axis, uint32_t rank, uint32_t *out, berth_error *err) {
  int64_t r = (int64_t)rank;
  if (rank == 0) return berth__fail(err, BERTH_INVALID, "axis %" PRId64 " of a scalar, which has no axes", axis);
  if (axis < -r || axis >= r)
    return berth__fail(err, BERTH_INVALID, "axis %" PRId64 " is out of range, expected %" PRId64 " to %" PRId64, axis,
                       -r, r - 1);
  *out = (uint32_t)(axis < 0 ? axis + r : axis);
  return BERTH_OK;
}

berth_status berth__same_dim(int64_t a, int64_t b, const char *what, int64_t *out, berth_error *err) {
  if (berth__dim_is_fixed(a) && berth__dim_is_fixed(b) && a != b)
    return berth__fail(err, BERTH_INVALID, "%s: extents %" PRId64 " and %" PRId64 " differ", what, a, b);
  if (berth__dim_is_fixed(a))
    *out = a;
  else if (berth__dim_is_fixed(b) || a == BERTH__DIM_UNKNOWN)
    *out = b;
  else
    *out = a;
  return BERTH_OK;
}

/* False: two fixed extents that cannot be broadcast. An open extent may turn out to be 1, so it yields to a fixed one
 * other than 1; next to another open one, the result is open. */
static bool broadcast_dim(int64_t a, int64_t b, int64_t *out) {
  if (a == b || b == 1)
    *out = a;
  else if (a == 1)
    *out = b;
  else if (berth__dim_is_fixed(a) && berth__dim_is_fixed(b))
    return false;
  else if (berth__dim_is_fixed(a))
    *out = a;
  else
    *out = berth__dim_is_fixed(b) ? b : BERTH__DIM_UNKNOWN;
  return true;
}

berth_status berth__broadcast(const berth__shape *a, const berth__shape *b, berth__shape *out, berth_error *err) {
  berth__shape result = {.rank = a->rank > b->rank ? a->rank : b->rank};
  for (uint32_t i = 0; i < result.rank; i++) { /* from the last axis */
    int64_t da = i < a->rank ? a->dim[a->rank - 1 - i] : 1;
    int64_t db = i < b->rank ? b->dim[b->rank - 1 - i] : 1;
    if (!broadcast_dim(da, db, &result.dim[result.rank - 1 - i])) {
      char ta[BERTH__SHAPE_TEXT], tb[BERTH__SHAPE_TEXT];
      return berth__fail(err, BERTH_INVALID,
                         "shapes %s and %s do not broadcast: axis -%" PRIu32 " has %" PRId64 " and %" PRId64,
                         berth__shape_text(a, ta), berth__shape_text(b, tb), i + 1, da, db);
    }
  }
  *out = result;
  return BERTH_OK;
}

berth_status berth__dim_add(int64_t a, int64_t b, int64_t *out, berth_error *err) {
  if (a == 0) return *out = b, BERTH_OK;
  if (b == 0) return *out = a, BERTH_OK;
  if (!berth__dim_is_fixed(a) || !berth__dim_is_fixed(b)) return *out = BERTH__DIM_UNKNOWN, BERTH_OK;
  if (berth__add_i64(a, b, out)) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "extent %" PRId64 " + %" PRId64 " is too large", a, b);
}

berth_status berth__dim_mul(int64_t a, int64_t b, int64_t *out, berth_error *err) {
  if (a == 1 || b == 0) return *out = b, BERTH_OK;
  if (b == 1 || a == 0) return *out = a, BERTH_OK;
  if (!berth__dim_is_fixed(a) || !berth__dim_is_fixed(b)) return *out = BERTH__DIM_UNKNOWN, BERTH_OK;
  if (berth__mul_extent(a, b, out)) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "extent %" PRId64 " * %" PRId64 " is too large", a, b);
}

/* An extent of 0 counts as 1 in the overflow check, because strides are products of the others. */
bool berth__shape_count(const berth__shape *shape, int64_t *out) {
  int64_t product = 1;
  bool empty = false;
  for (uint32_t i = 0; i < shape->rank; i++) {
    if (!berth__dim_is_fixed(shape->dim[i])) return false;
    if (shape->dim[i] == 0)
      empty = true;
    else if (!berth__mul_extent(product, shape->dim[i], &product))
      return false;
  }
  *out = empty ? 0 : product;
  return true;
}

bool berth__shape_equal(const berth__shape *a, const berth__shape *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (a->dim[i] != b->dim[i]) return false;
  return true;
}

/* 8 extents of at most 19 digits, with separators and brackets, always fit. */
const char *berth__shape_text(const berth__shape *shape, char text[BERTH__SHAPE_TEXT]) {
  size_t at = 0;
  text[at++] = '[';
  for (uint32_t i = 0; i < shape->rank && i < BERTH_MAX_RANK; i++) {
    const char *separator = i == 0 ? "" : ", ";
    int n = berth__dim_is_fixed(shape->dim[i])
                ? snprintf(text + at, BERTH__SHAPE_TEXT - at, "%s%" PRId64, separator, shape->dim[i])
                : snprintf(text + at, BERTH__SHAPE_TEXT - at, "%s?", separator);
    at += (size_t)n;
  }
  text[at++] = ']';
  text[at] = '\0';
  return text;
}

/* ---- Tensors -------------------------------------------------------------------------------------------------- */

int64_t berth__count(const berth_tensor *tensor) {
  int64_t count = 1;
  for (uint32_t i = 0; i < tensor->rank; i++) count *= tensor->dim[i];
  return count;
}

uint64_t berth__tensor_bytes(const berth_tensor *tensor) {
  return berth__storage_size(berth_type_storage(tensor->type), (uint64_t)berth__count(tensor));
}

/* The stride of an axis of extent 1, or of an empty tensor, is never used, so it may be anything. */
bool berth__is_contiguous(const berth_tensor *tensor) {
  int64_t expected = 1;
  if (berth__count(tensor) == 0) return true;
  for (uint32_t i = tensor->rank; i-- > 0;) {
    if (tensor->dim[i] != 1 && tensor->stride[i] != expected) return false;
    expected *= tensor->dim[i];
  }
  return true;
}

bool berth__op_takes(const berth__op *op, const berth_attr *attrs, uint32_t operand, const berth_tensor *tensor) {
  if (berth__is_contiguous(tensor)) return true;
  if (!berth__op_takes_strided(op, operand)) return false;
  return !berth__op_wants_unit_last(op, attrs, operand) || tensor->rank == 0 || tensor->stride[tensor->rank - 1] == 1;
}

void berth__contiguous_strides(uint32_t rank, const int64_t *dim, int64_t *stride) {
  int64_t next = 1;
  for (uint32_t i = rank; i-- > 0;) {
    stride[i] = next;
    if (dim[i] > 0) next *= dim[i];
  }
}

/* ---- Iteration ------------------------------------------------------------------------------------------------ */

void berth__broadcast_strides(const berth_tensor *tensor, uint32_t rank, const int64_t *dim, int64_t *stride) {
  uint32_t missing = rank - tensor->rank;
  for (uint32_t i = 0; i < rank; i++) {
    bool own = i >= missing && !(tensor->dim[i - missing] == 1 && dim[i] != 1);
    stride[i] = own ? tensor->stride[i - missing] : 0;
  }
}

void berth__walk_start(berth__walk *walk, uint32_t rank, const int64_t *dim, uint32_t n, const int64_t *const *stride,
                       int64_t begin) {
  walk->rank = rank;
  walk->n = n;
  walk->dim = dim;
  for (uint32_t k = 0; k < n; k++) {
    walk->stride[k] = stride[k];
    walk->index[k] = 0;
  }
  for (uint32_t i = rank; i-- > 0;) {
    int64_t extent = dim[i] > 0 ? dim[i] : 1;
    walk->at[i] = begin % extent;
    begin /= extent;
    for (uint32_t k = 0; k < n; k++) walk->index[k] += walk->at[i] * stride[k][i];
  }
}

void berth__walk_next(berth__walk *walk) {
  for (uint32_t i = walk->rank; i-- > 0;) {
    walk->at[i]++;
    for (uint32_t k = 0; k < walk->n; k++) walk->index[k] += walk->stride[k][i];
    if (walk->at[i] < walk->dim[i]) return;
    for (uint32_t k = 0; k < walk->n; k++) walk->index[k] -= walk->at[i] * walk->stride[k][i];
    walk->at[i] = 0;
  }
}

int64_t berth__op_items(const berth__op *op, const berth_op_call *call) {
  bool has_elements = false;
  for (uint32_t i = 0; i < call->n_out; i++) has_elements = has_elements || berth__count(&call->out[i]) != 0;
  if (!has_elements) return 0;
  return op->family->items != NULL ? op->family->items(call) : 1;
}
