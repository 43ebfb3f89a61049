/* The two ends of a loop. The nodes between them are its body and run once per round; the executor goes back to after
 * loop_begin as long as loop_end says so, and directly to loop_end if loop_begin says that there is no first round.
 *
 *   round, starts, carried... = loop_begin(trips, condition, first...)
 *   rounds, again, last..., stacked... = loop_end(round, starts, trips, condition, carried..., next..., scanned...)
 *
 * loop_end makes the next round's values: `rounds` is in the place of `round` and each `last` in that of its `carried`.
 * That is why `carried` is an operand; its elements are read only if there was no round. Scanned values become row
 * `round` of the stacked ones, which have one row per trip; rows that no round has filled are 0.
 *
 * `grows` is given to both: three numbers for each extent of a carried value that changes from round to round, namely
 * the number of the value, its axis, and how much a round can add to it. Such an extent is planned for all trips, and a
 * run finds the actual one. */
#include <inttypes.h>
#include <string.h>

#include "ops/operand.h"
#include "ops/registry.h"

#define MAX_TRIPS ((int64_t)1 << 48) /* more rows than memory can hold */

static const berth_attr attrs[] = {[BERTH__LOOP_GROWS] = {.name = "grows", .kind = BERTH_ATTR_INTS}};

/* ---- Inference ---- */

enum {
  VALUE,
  AXIS,
  BY,
  GROWTH
}; /* an entry of `grows` */

static berth_status check_grows(const berth__infer *infer, uint32_t first, uint32_t n_carried, berth_error *err) {
  const berth_attr *grows = &infer->attrs[BERTH__LOOP_GROWS];
  bool fits = grows->count % GROWTH == 0;
  for (uint32_t i = 0; fits && i < grows->count; i += GROWTH) {
    const int64_t *at = grows->ints + i;
    fits = at[VALUE] >= 0 && at[VALUE] < (int64_t)n_carried && at[AXIS] >= 0 && at[BY] >= 0 &&
           at[AXIS] < (int64_t)infer->in_shape[first + (uint32_t)at[VALUE]].rank;
  }
  return fits ? BERTH_OK
              : berth__fail(err, BERTH_INVALID,
                            "'grows' must have three numbers for each extent: a carried value, its axis, and by how "
                            "much a round can make it longer");
}

static bool grows_at(const berth__infer *infer, uint32_t value, uint32_t axis) {
  const berth_attr *grows = &infer->attrs[BERTH__LOOP_GROWS];
  for (uint32_t i = 0; i < grows->count; i += GROWTH)
    if (grows->ints[i + VALUE] == (int64_t)value && grows->ints[i + AXIS] == (int64_t)axis) return true;
  return false;
}

static berth_status want_scalar(const berth__infer *infer, uint32_t operand, berth_type type, berth_error *err) {
  int64_t count;
  BERTH__TRY(berth__want_type(infer, operand, type, err));
  if (berth__shape_count(&infer->in_shape[operand], &count) && count != 1)
    return berth__fail(err, BERTH_INVALID, "operand %" PRIu32 " has %" PRId64 " elements, but it must have one",
                       operand, count);
  return BERTH_OK;
}

static void give_scalar(berth__infer *infer, uint32_t out, berth_type type) {
  infer->out_type[out] = type;
  infer->out_shape[out] = (berth__shape){.rank = 0};
}

/* The upper bound of an extent, if requested; otherwise it is open. */
static berth_status infer_grown(berth__infer *infer, const int64_t *entry, berth_error *err) {
  int64_t *dim = &infer->out_shape[BERTH__LOOP_CARRIED + (uint32_t)entry[VALUE]].dim[entry[AXIS]], added;
  const berth_tensor trips = berth__infer_most(infer, BERTH__LOOP_TRIPS);
  const int64_t first = *dim, most = trips.data == NULL ? INT64_MAX : berth__load_i64(&trips, 0);
  *dim = BERTH__DIM_UNKNOWN;
  if (!infer->wants_bounds || !berth__dim_is_fixed(first)) return BERTH_OK;
  if (most > MAX_TRIPS && entry[BY] != 0)
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "nothing bounds the number of its rounds, so carried value %" PRId64
                       ", which grows with every round, has no size; give the loop a trip count that is known when the "
                       "plan is made",
                       entry[VALUE]);
  BERTH__TRY(berth__dim_mul(entry[BY] != 0 && most > 0 ? most : 0, entry[BY], &added, err));
  return berth__dim_add(first, added, dim, err);
}

static berth_status infer_begin(berth__infer *infer, berth_error *err) {
  const berth_attr *grows = &infer->attrs[BERTH__LOOP_GROWS];
  if (infer->n_out != infer->n_in)
    return berth__fail(err, BERTH_INVALID,
                       "%" PRIu32 " operands and %" PRIu32 " results are given; there must be as many of both",
                       infer->n_in, infer->n_out);
  BERTH__TRY(want_scalar(infer, BERTH__LOOP_TRIPS, BERTH_I64, err));
  BERTH__TRY(want_scalar(infer, BERTH__LOOP_CONDITION, BERTH_BOOL, err));
  give_scalar(infer, BERTH__LOOP_ROUND, BERTH_I64);
  give_scalar(infer, BERTH__LOOP_STARTS, BERTH_BOOL);
  for (uint32_t i = BERTH__LOOP_CARRIED; i < infer->n_out; i++) {
    infer->out_type[i] = infer->in_type[i];
    infer->out_shape[i] = infer->in_shape[i];
  }
  BERTH__TRY(check_grows(infer, BERTH__LOOP_CARRIED, infer->n_in - BERTH__LOOP_CARRIED, err));
  for (uint32_t i = 0; i < grows->count; i += GROWTH) BERTH__TRY(infer_grown(infer, grows->ints + i, err));
  return BERTH_OK;
}

/* Positions of a loop_end's operands and results. */
typedef struct parts {
  uint32_t n_carried, n_scanned;
  uint32_t carried, next, scanned; /* index of the first operand of each kind */
  uint32_t last, stacked;          /* index of the first result of each kind */
} parts;

static parts loop_parts_of(uint32_t n_in, uint32_t n_out) {
  parts p = {
      .n_carried = berth__loop_end_carried(n_in, n_out), .carried = BERTH__LOOP_END_CARRIED, .last = BERTH__LOOP_LAST};
  p.n_scanned = n_out - BERTH__LOOP_LAST - p.n_carried;
  p.next = p.carried + p.n_carried;
  p.scanned = p.next + p.n_carried;
  p.stacked = p.last + p.n_carried;
  return p;
}

static berth_status infer_last(berth__infer *infer, const parts *p, uint32_t index, berth_error *err) {
  const uint32_t before = p->carried + index, after = p->next + index, out = p->last + index;
  const berth__shape *a = &infer->in_shape[before], *b = &infer->in_shape[after];
  BERTH__TRY(berth__want_same_type(infer, before, after, err));
  bool agrees = a->rank == b->rank;
  infer->out_type[out] = infer->in_type[before];
  infer->out_shape[out] = *a;
  for (uint32_t i = 0; agrees && i < a->rank; i++) { /* open extents may have different upper bounds */
    if (infer->wants_bounds) continue;
    if (grows_at(infer, index, i) && berth__dim_is_fixed(a->dim[i]))
      return berth__fail(err, BERTH_INVALID,
                         "carried value %" PRIu32 " grows on axis %" PRIu32
                         " here, but not at the loop_begin: 'grows' must be the same at both",
                         index, i);
    if (!grows_at(infer, index, i))
      agrees = berth__same_dim(a->dim[i], b->dim[i], "", &infer->out_shape[out].dim[i], NULL) == BERTH_OK;
  }
  char x[BERTH__SHAPE_TEXT], y[BERTH__SHAPE_TEXT];
  if (!agrees)
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "carried value %" PRIu32
                       " has shape %s before a round and %s after it; a loop may make a value longer by the same "
                       "number of elements in every round, and must be unrolled for other changes: it then has a small "
                       "number of rounds that is known when the model is read",
                       index, berth__shape_text(a, x), berth__shape_text(b, y));
  return BERTH_OK;
}

static berth_status infer_stacked(berth__infer *infer, const parts *p, uint32_t index, berth_error *err) {
  const berth__shape *row = &infer->in_shape[p->scanned + index];
  const berth_tensor trips = berth__infer_most(infer, BERTH__LOOP_END_TRIPS);
  berth__shape *shape = &infer->out_shape[p->stacked + index];
  if (row->rank == BERTH_MAX_RANK)
    return berth__fail(err, BERTH_UNSUPPORTED, "a scanned value has rank %d, and stacked it would have one more",
                       BERTH_MAX_RANK);
  infer->out_type[p->stacked + index] = infer->in_type[p->scanned + index];
  *shape = (berth__shape){.rank = row->rank + 1, .dim = {BERTH__DIM_UNKNOWN}};
  memcpy(shape->dim + 1, row->dim, row->rank * sizeof *row->dim);
  if (trips.data == NULL) return BERTH_OK;
  const int64_t most = berth__load_i64(&trips, 0);
  if (most > MAX_TRIPS)
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "nothing bounds the number of its rounds, so a result that grows with every round has no size; "
                       "give the loop a trip count that is known when the plan is made");
  shape->dim[0] = most > 0 ? most : 0;
  return BERTH_OK;
}

static berth_status infer_end(berth__infer *infer, berth_error *err) {
  const uint32_t n_in = infer->n_in, n_out = infer->n_out;
  if (n_in < n_out + 2 || berth__loop_end_carried(n_in, n_out) > n_out - BERTH__LOOP_LAST)
    return berth__fail(err, BERTH_INVALID, "%" PRIu32 " operands do not go with %" PRIu32 " results", n_in, n_out);
  const parts p = loop_parts_of(n_in, n_out);
  BERTH__TRY(want_scalar(infer, BERTH__LOOP_ROUND, BERTH_I64, err));
  BERTH__TRY(want_scalar(infer, BERTH__LOOP_STARTS, BERTH_BOOL, err));
  BERTH__TRY(want_scalar(infer, BERTH__LOOP_END_TRIPS, BERTH_I64, err));
  BERTH__TRY(want_scalar(infer, BERTH__LOOP_END_CONDITION, BERTH_BOOL, err));
  give_scalar(infer, BERTH__LOOP_ROUNDS, BERTH_I64);
  give_scalar(infer, BERTH__LOOP_AGAIN, BERTH_BOOL);
  BERTH__TRY(check_grows(infer, p.carried, p.n_carried, err));
  for (uint32_t i = 0; i < p.n_carried; i++) BERTH__TRY(infer_last(infer, &p, i, err));
  for (uint32_t i = 0; i < p.n_scanned; i++) BERTH__TRY(infer_stacked(infer, &p, i, err));
  return BERTH_OK;
}

/* ---- Extents found by a run ---- */

static berth__shape loop_shape_of(const berth_tensor *tensor) {
  berth__shape shape = {.rank = tensor->rank};
  memcpy(shape.dim, tensor->dim, tensor->rank * sizeof *tensor->dim);
  return shape;
}

static berth_status find_begin(const berth_op_call *call, berth__shape *shapes, berth_error *err) {
  (void)err;
  for (uint32_t i = 0; i < call->n_out; i++)
    shapes[i] = i < BERTH__LOOP_CARRIED ? (berth__shape){.rank = 0} : loop_shape_of(&call->in[i]);
  return BERTH_OK;
}

/* Rows of one shape: that of the first round. */
static berth_status find_stacked(const berth_op_call *call, const parts *p, uint32_t index, berth__shape *shape,
                                 berth_error *err) {
  const berth_tensor *row = &call->in[p->scanned + index], *before = &call->out[p->stacked + index];
  const int64_t trips = berth__load_i64(&call->in[BERTH__LOOP_END_TRIPS], 0);
  const bool is_first = berth__load_i64(&call->in[BERTH__LOOP_ROUND], 0) == 0;
  *shape = (berth__shape){.rank = row->rank + 1, .dim = {trips > 0 ? trips : 0}};
  memcpy(shape->dim + 1, row->dim, row->rank * sizeof *row->dim);
  if (is_first || memcmp(before->dim + 1, row->dim, row->rank * sizeof *row->dim) == 0) return BERTH_OK;
  char now[BERTH__SHAPE_TEXT], then[BERTH__SHAPE_TEXT];
  const berth__shape first = loop_shape_of(before), rows = loop_shape_of(row);
  return berth__fail(
      err, BERTH_INVALID,
      "what a round adds has the shape %s, but rows of %s were stacked (with their number in front); all "
      "rounds must add the same shape",
      berth__shape_text(&rows, now), berth__shape_text(&first, then));
}

static berth_status find_end(const berth_op_call *call, berth__shape *shapes, berth_error *err) {
  const parts p = loop_parts_of(call->n_in, call->n_out);
  const bool starts = berth__load_i64(&call->in[BERTH__LOOP_STARTS], 0) != 0;
  shapes[BERTH__LOOP_ROUNDS] = shapes[BERTH__LOOP_AGAIN] = (berth__shape){.rank = 0};
  for (uint32_t i = 0; i < p.n_carried; i++)
    shapes[p.last + i] = loop_shape_of(&call->in[(starts ? p.next : p.carried) + i]);
  for (uint32_t i = 0; i < p.n_scanned; i++) BERTH__TRY(find_stacked(call, &p, i, &shapes[p.stacked + i], err));
  return BERTH_OK;
}

/* ---- Kernels ---- */

static size_t loop_bytes_of(const berth_tensor *tensor) {
  return (size_t)berth__count(tensor) * berth_type_size(tensor->type);
}

static void loop_copy(void *to, const void *from, size_t size) {
  if (to != from && size != 0) memmove(to, from, size);
}

static berth_status kernel_begin(const berth_op_call *call, berth_error *err) {
  const bool starts =
      berth__load_i64(&call->in[BERTH__LOOP_TRIPS], 0) > 0 && berth__load_i64(&call->in[BERTH__LOOP_CONDITION], 0) != 0;
  (void)err;
  for (uint32_t i = BERTH__LOOP_CARRIED; i < call->n_out; i++)
    loop_copy(call->out[i].data, call->in[i].data, loop_bytes_of(&call->out[i]));
  berth__store_i64(&call->out[BERTH__LOOP_ROUND], 0, 0);
  berth__store_i64(&call->out[BERTH__LOOP_STARTS], 0, starts);
  return BERTH_OK;
}

static void clear_rows(const berth_op_call *call, const parts *p, int64_t from) {
  for (uint32_t i = 0; i < p->n_scanned; i++) {
    const berth_tensor *stacked = &call->out[p->stacked + i];
    const size_t row = loop_bytes_of(&call->in[p->scanned + i]);
    if (stacked->dim[0] > from && row != 0)
      memset((char *)stacked->data + (size_t)from * row, 0, (size_t)(stacked->dim[0] - from) * row);
  }
}

static berth_status loop_store_rows(const berth_op_call *call, const parts *p, int64_t round, berth_error *err) {
  for (uint32_t i = 0; i < p->n_scanned; i++) {
    const berth_tensor *stacked = &call->out[p->stacked + i];
    const size_t row = loop_bytes_of(&call->in[p->scanned + i]);
    if (round >= stacked->dim[0])
      return berth__fail(err, BERTH_INTERNAL, "round %" PRId64 " has no row in result %" PRIu32, round, p->stacked + i);
    loop_copy((char *)stacked->data + (size_t)round * row, call->in[p->scanned + i].data, row);
  }
  return BERTH_OK;
}

/* Whether the next value is in a place where another one has to go, which may be written first. */
static bool is_in_the_way(const berth_op_call *call, const parts *p, uint32_t index) {
  const char *from = call->in[p->next + index].data, *end = from + loop_bytes_of(&call->in[p->next + index]);
  for (uint32_t i = 0; i < p->n_carried && from != end; i++) {
    const char *to = call->out[p->last + i].data, *to_end = to + loop_bytes_of(&call->out[p->last + i]);
    if (i != index && from < to_end && to < end) return true;
  }
  return false;
}

/* Moves all values at once: those in the way go through the scratch. */
static berth_status carry_on(const berth_op_call *call, const parts *p, berth_error *err) {
  char *staged = call->scratch;
  for (uint32_t i = 0; i < p->n_carried; i++) {
    if (!is_in_the_way(call, p, i)) continue;
    if (staged == NULL) return berth__fail(err, BERTH_INTERNAL, "there is no scratch for the carried values");
    loop_copy(staged, call->in[p->next + i].data, loop_bytes_of(&call->in[p->next + i]));
    staged += loop_bytes_of(&call->in[p->next + i]);
  }
  for (uint32_t i = 0; i < p->n_carried; i++)
    if (!is_in_the_way(call, p, i))
      loop_copy(call->out[p->last + i].data, call->in[p->next + i].data, loop_bytes_of(&call->in[p->next + i]));
  staged = call->scratch;
  for (uint32_t i = 0; i < p->n_carried; i++) {
    if (!is_in_the_way(call, p, i)) continue;
    loop_copy(call->out[p->last + i].data, staged, loop_bytes_of(&call->in[p->next + i]));
    staged += loop_bytes_of(&call->in[p->next + i]);
  }
  return BERTH_OK;
}

static berth_status kernel_end(const berth_op_call *call, berth_error *err) {
  const parts p = loop_parts_of(call->n_in, call->n_out);
  const bool starts = berth__load_i64(&call->in[BERTH__LOOP_STARTS], 0) != 0;
  int64_t rounds = 0;
  bool again = false;
  if (starts) { /* all scalars are read before anything is written: they may be in the place of a carried value */
    rounds = berth__load_i64(&call->in[BERTH__LOOP_ROUND], 0) + 1;
    again = rounds < berth__load_i64(&call->in[BERTH__LOOP_END_TRIPS], 0) &&
            berth__load_i64(&call->in[BERTH__LOOP_END_CONDITION], 0) != 0;
    BERTH__TRY(loop_store_rows(call, &p, rounds - 1, err));
    BERTH__TRY(carry_on(call, &p, err));
  } else {
    for (uint32_t i = 0; i < p.n_carried; i++)
      loop_copy(call->out[p.last + i].data, call->in[p.carried + i].data, loop_bytes_of(&call->out[p.last + i]));
  }
  if (!again) clear_rows(call, &p, rounds);
  berth__store_i64(&call->out[BERTH__LOOP_ROUNDS], 0, rounds);
  berth__store_i64(&call->out[BERTH__LOOP_AGAIN], 0, again);
  return BERTH_OK;
}

const berth__family berth__family_loop_begin = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = infer_begin,
    .find = find_begin,
    .kernel = kernel_begin,
    .valued = 1u << BERTH__LOOP_TRIPS,
    .is_loop = true,
};
const berth__family berth__family_loop_end = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = infer_end,
    .find = find_end,
    .kernel = kernel_end,
    .valued = 1u << BERTH__LOOP_END_TRIPS,
    .is_loop = true,
};
