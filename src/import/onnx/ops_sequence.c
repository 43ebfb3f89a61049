/* The ops of sequences (see sequence.h). */
#include "import/onnx/compose.h"
#include "import/onnx/converter.h"

typedef berth__onnx_sequence sequence;

static berth_status sequence_want_one(const berth__onnx_call *call, berth_error *err) {
  return call->n_out == 1 ? BERTH_OK : berth__fail(err, BERTH_MALFORMED, "it has %zu outputs, expected 1", call->n_out);
}

/* A new list of n values, which must be set. */
static berth_status sequence_make(berth__onnx_call *call, size_t n, berth_value **values, berth_error *err) {
  BERTH__TRY(sequence_want_one(call, err));
  return berth__onnx_sequence_list(call, n, call->out, values, err);
}

/* Operand 0, which must not be one that rounds add to. */
static berth_status sequence_want_known(const berth__onnx_call *call, sequence *out, berth_error *err) {
  BERTH__TRY(berth__onnx_sequence_in(call, 0, out, err));
  return out->before == BERTH_VALUE_NONE ? BERTH_OK : berth__onnx_sequence_fail_read(call, out, err);
}

/* Operand k as a tensor. */
static berth_status sequence_want_tensor(const berth__onnx_call *call, size_t k, berth_error *err) {
  const berth_value value = berth__onnx_in(call, k);
  if (value != BERTH_VALUE_NONE && !berth__onnx_is_sequence(value)) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "operand %zu must be a tensor", k);
}

static bool sequence_constant_place(const berth__onnx_call *call, size_t k, int64_t *place) {
  uint32_t count;
  return berth__onnx_constant_ints(call, call->in[k], place, 1, &count) && count == 1;
}

/* Operand k as an index among n, counted from the end if negative; `otherwise` if it is not given. */
static berth_status sequence_place(const berth__onnx_call *call, size_t k, size_t n, size_t otherwise, size_t *out,
                                   berth_error *err) {
  int64_t place;
  *out = otherwise;
  if (berth__onnx_in(call, k) == BERTH_VALUE_NONE) return BERTH_OK;
  BERTH__TRY(sequence_want_tensor(call, k, err));
  if (!sequence_constant_place(call, k, &place))
    return berth__onnx_unsupported(call, err, "where it changes a sequence must be a constant");
  const int64_t from = place < 0 ? place + (int64_t)n : place;
  if (from < 0 || from >= (int64_t)n)
    return berth__fail(err, BERTH_MALFORMED, "place %lld is outside of a sequence with %zu", (long long)place, n);
  *out = (size_t)from;
  return BERTH_OK;
}

static berth_status convert_empty(berth__onnx_call *call, berth_error *err) {
  berth_value *values;
  return sequence_make(call, 0, &values, err);
}

static berth_status convert_construct(berth__onnx_call *call, berth_error *err) {
  berth_value *values;
  for (size_t i = 0; i < call->n_in; i++) BERTH__TRY(sequence_want_tensor(call, i, err));
  BERTH__TRY(sequence_make(call, call->n_in, &values, err));
  for (size_t i = 0; i < call->n_in; i++) values[i] = call->in[i];
  return BERTH_OK;
}

/* ---- One tensor more or less ---- */

/* Slices have only two places that stay the same however many there are: the first and the last. */
static berth_status sequence_is_front(const berth__onnx_call *call, size_t k, bool *is_front, berth_error *err) {
  int64_t place = -1;
  *is_front = false;
  if (berth__onnx_in(call, k) == BERTH_VALUE_NONE) return BERTH_OK;
  BERTH__TRY(sequence_want_tensor(call, k, err));
  if (!sequence_constant_place(call, k, &place) || place != 0)
    return berth__onnx_unsupported(call, err,
                                   "how many tensors the sequence has is not known when the file is read: it can "
                                   "change only at place 0 (as a constant) or, without a place, at its end");
  *is_front = true;
  return BERTH_OK;
}

static berth_status sequence_insert_slice(berth__onnx_call *call, const sequence *old, berth_error *err) {
  const int64_t first = 0;
  const berth_attr axis = berth_attr_int("axis", 0);
  bool is_front;
  berth_value slice, joined;
  BERTH__TRY(sequence_want_one(call, err));
  BERTH__TRY(sequence_is_front(call, 2, &is_front, err));
  BERTH__TRY(berth__onnx_listed(call, "unsqueeze", call->in[1], "axes", &first, 1, &slice, err));
  if (!is_front) return berth__onnx_sequence_append(call, old, slice, call->out, err);
  if (old->before != BERTH_VALUE_NONE) return berth__onnx_sequence_fail_read(call, old, err);
  BERTH__TRY(berth__onnx_emit(call, "concat", (berth_value[]){slice, old->stacked}, 2, &axis, 1, &joined, 1, err));
  return berth__onnx_sequence_slices(call, joined, call->out, err);
}

static berth_status convert_insert(berth__onnx_call *call, berth_error *err) {
  sequence old;
  berth_value *values;
  size_t at;
  BERTH__TRY(berth__onnx_want_in(call, 2, err));
  BERTH__TRY(berth__onnx_sequence_in(call, 0, &old, err));
  BERTH__TRY(sequence_want_tensor(call, 1, err));
  if (!old.is_list) return sequence_insert_slice(call, &old, err);
  if (old.before != BERTH_VALUE_NONE && berth__onnx_in(call, 2) != BERTH_VALUE_NONE)
    return berth__onnx_sequence_fail_read(call, &old, err);
  BERTH__TRY(sequence_place(call, 2, old.n + 1, old.n, &at, err)); /* may be after the last one */
  BERTH__TRY(sequence_make(call, old.n + 1, &values, err));
  for (size_t i = 0; i <= old.n; i++) values[i] = i == at ? call->in[1] : old.values[i - (i > at)];
  call->converter->sequences[call->out[0] - BERTH__ONNX_SEQUENCES].before = old.before;
  return BERTH_OK;
}

static berth_status sequence_erase_slice(berth__onnx_call *call, const sequence *old, berth_error *err) {
  const int64_t axis = 0;
  int64_t begin = 0, end = -1;
  bool is_front;
  berth_value left;
  BERTH__TRY(sequence_want_one(call, err));
  BERTH__TRY(sequence_is_front(call, 1, &is_front, err));
  if (is_front) begin = 1, end = INT64_MAX;
  const berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &begin, 1),
                              berth_attr_ints("ends", &end, 1)};
  BERTH__TRY(berth__onnx_emit(call, "narrow", &old->stacked, 1, attrs, 3, &left, 1, err));
  return berth__onnx_sequence_slices(call, left, call->out, err);
}

static berth_status convert_erase(berth__onnx_call *call, berth_error *err) {
  sequence old;
  berth_value *values;
  size_t at;
  BERTH__TRY(sequence_want_known(call, &old, err));
  if (!old.is_list) return sequence_erase_slice(call, &old, err);
  if (old.n == 0) return berth__fail(err, BERTH_MALFORMED, "the sequence is empty");
  BERTH__TRY(sequence_place(call, 1, old.n, old.n - 1, &at, err));
  BERTH__TRY(sequence_make(call, old.n - 1, &values, err));
  for (size_t i = 0; i + 1 < old.n; i++) values[i] = old.values[i + (i >= at)];
  return BERTH_OK;
}

/* ---- Reading ---- */

/* A slice by an index that a run may compute: from the end if it is negative, and checked by the gather. */
static berth_status sequence_slice_at(berth__onnx_call *call, const sequence *from, berth_error *err) {
  const berth_attr axis = berth_attr_int("axis", 0);
  berth_value in[2] = {BERTH_VALUE_NONE, call->in[1]};
  BERTH__TRY(berth__onnx_sequence_stack(call, from, &in[0], err));
  if (berth__onnx_shape(call, in[1])->rank != 0) BERTH__TRY(berth__onnx_unary(call, "squeeze", in[1], &in[1], err));
  return berth__onnx_emit(call, "gather", in, 2, &axis, 1, call->out, 1, err);
}

static berth_status convert_at(berth__onnx_call *call, berth_error *err) {
  sequence from;
  int64_t constant;
  size_t at;
  BERTH__TRY(berth__onnx_want_in(call, 2, err));
  BERTH__TRY(sequence_want_known(call, &from, err));
  BERTH__TRY(sequence_want_tensor(call, 1, err));
  BERTH__TRY(sequence_want_one(call, err));
  if (!from.is_list || (from.n != 0 && !sequence_constant_place(call, 1, &constant)))
    return sequence_slice_at(call, &from, err);
  BERTH__TRY(sequence_place(call, 1, from.n, 0, &at, err));
  call->out[0] = from.values[at];
  return BERTH_OK;
}

static berth_status convert_length(berth__onnx_call *call, berth_error *err) {
  const berth_attr first[] = {berth_attr_int("start", 0), berth_attr_int("end", 1)};
  const int64_t axis = 0;
  sequence of;
  BERTH__TRY(sequence_want_known(call, &of, err));
  BERTH__TRY(sequence_want_one(call, err));
  if (of.is_list) return berth__onnx_scalar(call, BERTH_I64, (double)of.n, &call->out[0], err);
  BERTH__TRY(berth__onnx_emit(call, "shape", &of.stacked, 1, first, 2, call->out, 1, err));
  return berth__onnx_listed(call, "squeeze", call->out[0], "axes", &axis, 1, call->out, err);
}

/* ---- Tensors to sequences and back ---- */

static berth_status sequence_join_slices(berth__onnx_call *call, berth_value stacked, berth_error *err) {
  const bool is_new = berth__onnx_int(call, "new_axis", 0) != 0;
  const uint32_t rank = berth__onnx_shape(call, stacked)->rank - (is_new ? 0 : 1);
  uint32_t axis;
  BERTH__TRY(berth__onnx_axis(call, berth__onnx_int(call, "axis", 0), rank, &axis, err));
  return is_new ? berth__onnx_move_first(call, stacked, axis, call->out, err)
                : berth__onnx_join_first(call, stacked, axis, call->out, err);
}

static berth_status sequence_join(berth__onnx_call *call, const sequence *from, berth_value *parts, berth_error *err) {
  const bool is_new = berth__onnx_int(call, "new_axis", 0) != 0;
  const int64_t given = berth__onnx_int(call, "axis", 0);
  const berth_attr axis = berth_attr_int("axis", given), axes = berth_attr_ints("axes", &given, 1);
  for (size_t i = 0; i < from->n; i++) {
    parts[i] = from->values[i];
    if (is_new) BERTH__TRY(berth__onnx_emit(call, "unsqueeze", &from->values[i], 1, &axes, 1, &parts[i], 1, err));
  }
  return berth__onnx_emit(call, "concat", parts, from->n, &axis, 1, call->out, 1, err);
}

static berth_status convert_concat(berth__onnx_call *call, berth_error *err) {
  sequence from;
  BERTH__TRY(sequence_want_known(call, &from, err));
  BERTH__TRY(sequence_want_one(call, err));
  if (!from.is_list) return sequence_join_slices(call, from.stacked, err);
  if (from.n == 0) return berth__fail(err, BERTH_MALFORMED, "the sequence is empty");
  berth_value *parts = berth__alloc_array(call->graph->ctx, from.n, sizeof *parts);
  if (parts == NULL) return berth__fail_nomem(err, "a sequence");
  const berth_status status = sequence_join(call, &from, parts, err);
  berth__free(call->graph->ctx, parts);
  return status;
}

/* Elements [begin, end) along the axis; without the axis if a single one is wanted. */
static berth_status sequence_cut(berth__onnx_call *call, int64_t axis, int64_t begin, int64_t end, bool is_flat,
                                 berth_value *out, berth_error *err) {
  const berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &begin, 1),
                              berth_attr_ints("ends", &end, 1)};
  BERTH__TRY(berth__onnx_emit(call, "narrow", call->in, 1, attrs, 3, out, 1, err));
  return is_flat ? berth__onnx_emit(call, "squeeze", out, 1, attrs, 1, out, 1, err) : BERTH_OK;
}

/* The size of each piece: `each`, with a shorter last one; or the n sizes of a list. */
typedef struct pieces {
  int64_t axis, extent, each;
  const int64_t *sizes; /* NULL: see each */
  size_t n;
  bool is_flat;
} pieces;

static berth_status sequence_split(berth__onnx_call *call, const pieces *p, berth_error *err) {
  berth_value *values;
  int64_t begin = 0;
  BERTH__TRY(sequence_make(call, p->n, &values, err));
  for (size_t i = 0; i < p->n; i++) {
    const int64_t left = p->extent - begin, size = p->sizes != NULL ? p->sizes[i] : p->each < left ? p->each : left;
    if (size < 0 || size > left) return berth__fail(err, BERTH_MALFORMED, "the parts are not what there is to split");
    BERTH__TRY(sequence_cut(call, p->axis, begin, begin + size, p->is_flat, &values[i], err));
    begin += size;
  }
  return begin == p->extent ? BERTH_OK : berth__fail(err, BERTH_MALFORMED, "the parts are not what there is to split");
}

/* Slices of one element each. With the axis, if the file does not want to lose it. */
static berth_status sequence_slices(berth__onnx_call *call, uint32_t axis, bool is_flat, berth_value *out,
                                    berth_error *err) {
  const uint32_t rank = berth__onnx_shape(call, call->in[0])->rank;
  const int64_t again = (int64_t)axis + 1;
  int64_t perm[BERTH_MAX_RANK];
  *out = call->in[0];
  for (uint32_t d = 0; d < rank; d++) perm[d] = d == 0 ? axis : d <= axis ? d - 1 : d;
  if (axis != 0) BERTH__TRY(berth__onnx_listed(call, "transpose", *out, "perm", perm, rank, out, err));
  return is_flat ? BERTH_OK : berth__onnx_listed(call, "unsqueeze", *out, "axes", &again, 1, out, err);
}

#define MOST_SIZES 4096u

static berth_status sequence_read_sizes(berth__onnx_call *call, pieces *p, int64_t *sizes, berth_error *err) {
  const berth_value by = berth__onnx_in(call, 1);
  uint32_t count = 0;
  if (by == BERTH_VALUE_NONE) {
    p->is_flat = berth__onnx_int(call, "keepdims", 1) == 0;
    return BERTH_OK;
  }
  BERTH__TRY(sequence_want_tensor(call, 1, err));
  if (!berth__onnx_constant_ints(call, by, sizes, MOST_SIZES, &count) || count == 0)
    return berth__onnx_unsupported(call, err, "`split` must be a constant of at most %u numbers", MOST_SIZES);
  p->each = sizes[0];
  p->n = count;
  if (berth__onnx_shape(call, by)->rank != 0) p->sizes = sizes;
  return p->each >= 1 || p->sizes != NULL ? BERTH_OK : berth__fail(err, BERTH_MALFORMED, "`split` is below 1");
}

/* Pieces of one element are slices of one value, too: a loop can take them one after the other. */
static berth_status convert_split(berth__onnx_call *call, berth_error *err) {
  int64_t sizes[MOST_SIZES];
  uint32_t axis;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(sequence_want_tensor(call, 0, err));
  BERTH__TRY(sequence_want_one(call, err));
  const berth__shape *shape = berth__onnx_shape(call, call->in[0]);
  BERTH__TRY(berth__onnx_axis(call, berth__onnx_int(call, "axis", 0), shape->rank, &axis, err));
  pieces p = {.axis = axis, .extent = shape->dim[axis], .each = 1};
  BERTH__TRY(sequence_read_sizes(call, &p, sizes, err));
  const bool has_slices = p.sizes == NULL && p.each == 1 && (p.is_flat || shape->rank < BERTH_MAX_RANK);
  berth_value stacked = BERTH_VALUE_NONE;
  if (p.extent < 0 && !has_slices)
    return berth__onnx_unsupported(call, err,
                                   "how many tensors it gives depends on an extent that the file leaves open; then "
                                   "only pieces of one element each are supported");
  if (p.sizes == NULL && p.extent >= 0) p.n = (size_t)(p.extent / p.each + (p.extent % p.each != 0));
  if (has_slices) BERTH__TRY(sequence_slices(call, axis, p.is_flat, &stacked, err));
  if (p.extent < 0) return berth__onnx_sequence_slices(call, stacked, call->out, err);
  BERTH__TRY(sequence_split(call, &p, err));
  call->converter->sequences[call->out[0] - BERTH__ONNX_SEQUENCES].stacked = stacked;
  return BERTH_OK;
}

const berth__onnx_handler berth__onnx_sequences[] = {
    {"ConcatFromSequence", convert_concat, NULL},
    {"SequenceAt", convert_at, NULL},
    {"SequenceConstruct", convert_construct, NULL},
    {"SequenceEmpty", convert_empty, NULL},
    {"SequenceErase", convert_erase, NULL},
    {"SequenceInsert", convert_insert, NULL},
    {"SequenceLength", convert_length, NULL},
    {"SplitToSequence", convert_split, NULL},
    {NULL, NULL, NULL},
};
