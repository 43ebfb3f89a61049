/* The two ends of a loop. The nodes between them are its body and run once per round; whoever runs them goes back after
 * loop_begin as long as loop_end says so, and straight to loop_end where loop_begin says that there is no first round.
 *
 *   round, starts, carried... = loop_begin(trips, condition, first...)
 *   rounds, again, last..., stacked... = loop_end(round, starts, trips, condition, carried..., next..., scanned...)
 *
 * loop_end makes the next round's values: `rounds` lies where `round` does and each `last` where its `carried` does.
 * That is why `carried` is an operand; its elements are read only where there was no round. What is scanned becomes row
 * `round` of what is stacked, which has a row for each of the trips; rows that no round has filled are 0. */
#include <inttypes.h>
#include <string.h>

#include "ops/operand.h"
#include "ops/registry.h"

#define MAX_TRIPS ((int64_t)1 << 48) /* more rows than memory can hold */

/* ---- Inference ---- */

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

static berth_status infer_begin(berth__infer *infer, berth_error *err) {
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
  return BERTH_OK;
}

/* Where the parts of a loop_end stand. */
typedef struct parts {
  uint32_t n_carried, n_scanned;
  uint32_t carried, next, scanned; /* first operands */
  uint32_t last, stacked;          /* first results */
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
  for (uint32_t i = 0; agrees && i < a->rank; i++)
    agrees = berth__same_dim(a->dim[i], b->dim[i], "", &infer->out_shape[out].dim[i], NULL) == BERTH_OK;
  char x[BERTH__SHAPE_TEXT], y[BERTH__SHAPE_TEXT];
  if (!agrees)
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "carried value %" PRIu32
                       " has shape %s before a round and %s behind it; a loop whose shapes "
                       "change must have a small number of rounds that is known when the model is read",
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
  for (uint32_t i = 0; i < p.n_carried; i++) BERTH__TRY(infer_last(infer, &p, i, err));
  for (uint32_t i = 0; i < p.n_scanned; i++) BERTH__TRY(infer_stacked(infer, &p, i, err));
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

/* Whether the next value lies where another one is to go, which may be written first. */
static bool is_in_the_way(const berth_op_call *call, const parts *p, uint32_t index) {
  const char *from = call->in[p->next + index].data, *end = from + loop_bytes_of(&call->in[p->next + index]);
  for (uint32_t i = 0; i < p->n_carried && from != end; i++) {
    const char *to = call->out[p->last + i].data, *to_end = to + loop_bytes_of(&call->out[p->last + i]);
    if (i != index && from < to_end && to < end) return true;
  }
  return false;
}

/* All at once: those that are in the way go through the scratch. */
static berth_status carry_on(const berth_op_call *call, const parts *p, berth_error *err) {
  char *staged = call->scratch;
  for (uint32_t i = 0; i < p->n_carried; i++) {
    if (!is_in_the_way(call, p, i)) continue;
    if (staged == NULL) return berth__fail(err, BERTH_INTERNAL, "there is no scratch for what is carried");
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
  if (starts) { /* all numbers are read before anything is written: they may lie in what is carried */
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

const berth__family berth__family_loop_begin = {.infer = infer_begin, .kernel = kernel_begin, .is_loop = true};
const berth__family berth__family_loop_end = {
    .infer = infer_end,
    .kernel = kernel_end,
    .valued = 1u << BERTH__LOOP_END_TRIPS,
    .is_loop = true,
};
