/* rope: rotates pairs of elements of every head by an angle proportional to the position.
 *   x            [B, H, S, D], or packed as [B, S, H * D] or [S, H * D] (`heads`)
 *   positions    i32 or i64, [S] or [B, S]: the angle of pair i is position * theta ^ (-2 i / dims)
 *   or cos, sin  tables of a float type, [S, dims / 2] or [B, S, dims / 2]
 * Pairs are (i, i + dims / 2), or neighbours (2 i, 2 i + 1) if `interleaved`. Elements past `dims` are unchanged. */
#include <inttypes.h>
#include <math.h>

#include "ops/heads.h"
#include "ops/line.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {
    [BERTH__ROPE_HEADS] = {.name = "heads", .kind = BERTH_ATTR_INT},
    [BERTH__ROPE_THETA] = {.name = "theta", .kind = BERTH_ATTR_FLOAT, .f = 10000.0},
    [BERTH__ROPE_DIMS] = {.name = "dims", .kind = BERTH_ATTR_INT}, /* 0: the whole head */
    [BERTH__ROPE_INTERLEAVED] = {.name = "interleaved", .kind = BERTH_ATTR_INT},
};

static int64_t rotated(const berth_attr *attr, int64_t head_size) {
  return attr[BERTH__ROPE_DIMS].i == 0 ? head_size : attr[BERTH__ROPE_DIMS].i;
}

static berth_status rope_check_attributes(const berth_attr *attr, int64_t head_size, berth_error *err) {
  const int64_t dims = rotated(attr, head_size);
  if (!(attr[BERTH__ROPE_THETA].f > 0) || isinf(attr[BERTH__ROPE_THETA].f))
    return berth__fail(err, BERTH_INVALID, "theta is %g, expected a number over 0", attr[BERTH__ROPE_THETA].f);
  if (attr[BERTH__ROPE_DIMS].i == 0 && !berth__dim_is_fixed(head_size)) return BERTH_OK;
  if (dims < 0 || dims % 2 != 0)
    return berth__fail(err, BERTH_INVALID, "%" PRId64 " rotated elements do not make pairs", dims);
  if (berth__dim_is_fixed(head_size) && dims > head_size)
    return berth__fail(err, BERTH_INVALID, "`dims` is %" PRId64 ", but a head has %" PRId64 " elements", dims,
                       head_size);
  return BERTH_OK;
}

/* [S, tail...] or [B, S, tail...], where the tail has `n_tail` axes. */
static berth_status check_rows(const berth__infer *infer, uint32_t operand, const berth__heads *x, uint32_t n_tail,
                               berth_error *err) {
  const berth__shape *shape = &infer->in_shape[operand];
  int64_t same;
  BERTH__TRY(berth__want_rank(infer, operand, 1 + n_tail, 2 + n_tail, err));
  const uint32_t rows = shape->rank - 1 - n_tail;
  if (rows == 1) BERTH__TRY(berth__same_dim(x->batch, shape->dim[0], "batch of x and of its positions", &same, err));
  return berth__same_dim(x->length, shape->dim[rows], "rows of x and of its positions", &same, err);
}

static berth_status rope_check_table(const berth__infer *infer, uint32_t operand, const berth__heads *x,
                                     berth_error *err) {
  const berth__shape *shape = &infer->in_shape[operand];
  const int64_t dims = rotated(infer->attrs, x->size);
  int64_t same;
  BERTH__TRY(berth__want_float(infer, operand, err));
  BERTH__TRY(check_rows(infer, operand, x, 1, err));
  return berth__same_dim(berth__dim_is_fixed(dims) ? dims / 2 : BERTH__DIM_UNKNOWN, shape->dim[shape->rank - 1],
                         "pairs of x and of its tables", &same, err);
}

static berth_status rope_infer(berth__infer *infer, berth_error *err) {
  berth__heads x;
  const bool has_third = infer->n_in > BERTH__ROPE_SIN && infer->in_type[BERTH__ROPE_SIN] != BERTH_TYPE_NONE;
  const berth_type second = infer->in_type[BERTH__ROPE_POSITIONS];
  BERTH__TRY(berth__want_float(infer, BERTH__ROPE_X, err));
  BERTH__TRY(berth__heads_infer(infer, BERTH__ROPE_X, infer->attrs[BERTH__ROPE_HEADS].i, "heads", &x, err));
  BERTH__TRY(rope_check_attributes(infer->attrs, x.size, err));
  if (has_third) {
    BERTH__TRY(rope_check_table(infer, BERTH__ROPE_COS, &x, err));
    BERTH__TRY(rope_check_table(infer, BERTH__ROPE_SIN, &x, err));
  } else {
    if (second != BERTH_I32 && second != BERTH_I64)
      return berth__fail(err, BERTH_INVALID,
                         "operand 1 has type %s: give positions of type i32 or i64, or a table of"
                         " cosines and one of sines",
                         berth_type_name(second));
    BERTH__TRY(check_rows(infer, BERTH__ROPE_POSITIONS, &x, 0, err));
  }
  infer->out_type[0] = infer->in_type[BERTH__ROPE_X];
  infer->out_shape[0] = infer->in_shape[BERTH__ROPE_X];
  return BERTH_OK;
}

/* Items are rows of the batch: an angle is computed once for all heads. */
static int64_t rope_items(const berth_op_call *call) {
  const berth__heads x = berth__heads_of(&call->in[BERTH__ROPE_X], call->attrs[BERTH__ROPE_HEADS].i);
  return x.batch * x.length;
}

typedef struct job {
  const berth_op_call *call;
  berth__heads x;
  int64_t pairs;
  bool has_tables;
  double *frequency, *cosine, *sine, *row; /* in scratch */
} job;

static uint64_t rope_scratch(const berth_op_call *call) {
  const berth__heads x = berth__heads_of(&call->in[BERTH__ROPE_X], call->attrs[BERTH__ROPE_HEADS].i);
  return (uint64_t)(x.size + 3 * (rotated(call->attrs, x.size) / 2)) * sizeof(double);
}

static void rope_describe(const berth_op_call *call, job *j) {
  j->call = call;
  j->x = berth__heads_of(&call->in[BERTH__ROPE_X], call->attrs[BERTH__ROPE_HEADS].i);
  const int64_t dims = rotated(call->attrs, j->x.size);
  j->pairs = dims / 2;
  j->has_tables = call->n_in > 2 && call->in[BERTH__ROPE_SIN].data;
  j->frequency = call->scratch;
  j->cosine = j->frequency + j->pairs;
  j->sine = j->cosine + j->pairs;
  j->row = j->sine + j->pairs;
  for (int64_t i = 0; i < j->pairs && !j->has_tables; i++)
    j->frequency[i] = pow(call->attrs[BERTH__ROPE_THETA].f, -2.0 * (double)i / (double)dims);
}

/* Cosines and sines for one row. Tables without a batch axis are shared by all batches. */
static void find_angles(const job *j, int64_t batch, int64_t row) {
  const berth_tensor *second = &j->call->in[BERTH__ROPE_POSITIONS];
  const bool by_batch = second->rank == (j->has_tables ? 3u : 2u);
  const int64_t at = by_batch ? batch * j->x.length + row : row;
  if (j->has_tables) {
    berth__line_load(second, at * j->pairs, 1, j->pairs, j->cosine);
    berth__line_load(&j->call->in[BERTH__ROPE_SIN], at * j->pairs, 1, j->pairs, j->sine);
    return;
  }
  const double position = (double)berth__load_i64(second, at);
  for (int64_t i = 0; i < j->pairs; i++) {
    j->cosine[i] = cos(position * j->frequency[i]);
    j->sine[i] = sin(position * j->frequency[i]);
  }
}

static void rope_turn(const job *j) {
  const bool neighbours = j->call->attrs[BERTH__ROPE_INTERLEAVED].i != 0;
  for (int64_t i = 0; i < j->pairs; i++) {
    double *a = &j->row[neighbours ? 2 * i : i], *b = &j->row[neighbours ? 2 * i + 1 : i + j->pairs];
    const double first = *a, second = *b;
    *a = first * j->cosine[i] - second * j->sine[i];
    *b = first * j->sine[i] + second * j->cosine[i];
  }
}

static berth_status rope_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  job j;
  rope_describe(call, &j);
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t batch = item / j.x.length, row = item % j.x.length;
    find_angles(&j, batch, row);
    for (int64_t head = 0; head < j.x.heads; head++) {
      const int64_t at = berth__heads_at(&j.x, batch, head, row);
      berth__line_load(&call->in[BERTH__ROPE_X], at, 1, j.x.size, j.row);
      rope_turn(&j);
      berth__line_store(&call->out[0], at, j.x.size, j.row);
    }
  }
  return BERTH_OK;
}

const berth__family berth__family_rope = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = rope_infer,
    .items = rope_items,
    .scratch = rope_scratch,
    .kernel = rope_kernel,
};
