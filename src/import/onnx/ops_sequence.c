/* Sequences of tensors. How many tensors a sequence has, and which of them a node takes, is known when the file is
 * read: a sequence is then a list of values outside any graph. */
#include "import/onnx/compose.h"
#include "import/onnx/converter.h"

#define MOST_IN_SEQUENCES (1u << 22) /* values in all sequences of a model: a small file could insert without bound */

typedef berth__onnx_sequence sequence;

/* A new sequence of n values, which must be set; the converter owns it. */
static berth_status sequence_make(berth__onnx_call *call, size_t n, sequence **made, berth_error *err) {
  berth__onnx_converter *c = call->converter;
  berth_context *ctx = c->graph->ctx;
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "it has %zu outputs, expected 1", call->n_out);
  if (n > MOST_IN_SEQUENCES - c->n_in_sequences)
    return berth__fail(err, BERTH_UNSUPPORTED, "the sequences of the model have more than %u tensors",
                       MOST_IN_SEQUENCES);
  BERTH__TRY(BERTH__RESERVE(ctx, c->sequences, c->sequences_capacity, c->n_sequences + 1, err));
  berth_value *values = berth__alloc_array(ctx, n + 1, sizeof *values); /* never NULL, even if empty */
  if (values == NULL) return berth__fail_nomem(err, "a sequence");
  *made = &c->sequences[c->n_sequences];
  **made = (sequence){values, n};
  call->out[0] = BERTH__ONNX_SEQUENCES + (berth_value)c->n_sequences++;
  c->n_in_sequences += n;
  return BERTH_OK;
}

/* A copy: making another sequence may move it. */
static berth_status sequence_of(const berth__onnx_call *call, size_t k, sequence *out, berth_error *err) {
  const berth_value value = berth__onnx_in(call, k);
  *out = (sequence){0};
  if (!berth__onnx_is_sequence(value)) return berth__fail(err, BERTH_MALFORMED, "operand %zu is not a sequence", k);
  *out = call->converter->sequences[value - BERTH__ONNX_SEQUENCES];
  return BERTH_OK;
}

/* Operand k as a tensor. */
static berth_status sequence_want_tensor(const berth__onnx_call *call, size_t k, berth_error *err) {
  const berth_value value = berth__onnx_in(call, k);
  if (value != BERTH_VALUE_NONE && !berth__onnx_is_sequence(value)) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "operand %zu must be a tensor", k);
}

/* Operand k as an index among n, counted from the end if negative; `otherwise` if it is not given. */
static berth_status sequence_place(const berth__onnx_call *call, size_t k, size_t n, size_t otherwise, size_t *out,
                                   berth_error *err) {
  int64_t place;
  uint32_t count;
  *out = otherwise;
  if (berth__onnx_in(call, k) == BERTH_VALUE_NONE) return BERTH_OK;
  BERTH__TRY(sequence_want_tensor(call, k, err));
  if (!berth__onnx_constant_ints(call, call->in[k], &place, 1, &count) || count != 1)
    return berth__onnx_unsupported(call, err, "which tensor of a sequence it takes must be a constant");
  const int64_t from = place < 0 ? place + (int64_t)n : place;
  if (from < 0 || from >= (int64_t)n)
    return berth__fail(err, BERTH_MALFORMED, "place %lld is outside of a sequence with %zu", (long long)place, n);
  *out = (size_t)from;
  return BERTH_OK;
}

static berth_status convert_empty(berth__onnx_call *call, berth_error *err) {
  sequence *made;
  return sequence_make(call, 0, &made, err);
}

static berth_status convert_construct(berth__onnx_call *call, berth_error *err) {
  sequence *made;
  for (size_t i = 0; i < call->n_in; i++) BERTH__TRY(sequence_want_tensor(call, i, err));
  BERTH__TRY(sequence_make(call, call->n_in, &made, err));
  for (size_t i = 0; i < call->n_in; i++) made->values[i] = call->in[i];
  return BERTH_OK;
}

static berth_status convert_insert(berth__onnx_call *call, berth_error *err) {
  sequence old, *made;
  size_t at;
  BERTH__TRY(berth__onnx_want_in(call, 2, err));
  BERTH__TRY(sequence_of(call, 0, &old, err));
  BERTH__TRY(sequence_want_tensor(call, 1, err));
  BERTH__TRY(sequence_place(call, 2, old.n + 1, old.n, &at, err)); /* may be after the last one */
  BERTH__TRY(sequence_make(call, old.n + 1, &made, err));
  for (size_t i = 0; i <= old.n; i++) made->values[i] = i == at ? call->in[1] : old.values[i - (i > at)];
  return BERTH_OK;
}

static berth_status convert_erase(berth__onnx_call *call, berth_error *err) {
  sequence old, *made;
  size_t at;
  BERTH__TRY(sequence_of(call, 0, &old, err));
  if (old.n == 0) return berth__fail(err, BERTH_MALFORMED, "the sequence is empty");
  BERTH__TRY(sequence_place(call, 1, old.n, old.n - 1, &at, err));
  BERTH__TRY(sequence_make(call, old.n - 1, &made, err));
  for (size_t i = 0; i + 1 < old.n; i++) made->values[i] = old.values[i + (i >= at)];
  return BERTH_OK;
}

static berth_status convert_at(berth__onnx_call *call, berth_error *err) {
  sequence from;
  size_t at;
  BERTH__TRY(berth__onnx_want_in(call, 2, err));
  BERTH__TRY(sequence_of(call, 0, &from, err));
  BERTH__TRY(sequence_place(call, 1, from.n, 0, &at, err));
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "it has %zu outputs, expected 1", call->n_out);
  call->out[0] = from.values[at];
  return BERTH_OK;
}

static berth_status convert_length(berth__onnx_call *call, berth_error *err) {
  sequence of;
  BERTH__TRY(sequence_of(call, 0, &of, err));
  return berth__onnx_scalar(call, BERTH_I64, (double)of.n, &call->out[0], err);
}

/* ---- Tensors to sequences and back ---- */

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
  BERTH__TRY(sequence_of(call, 0, &from, err));
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
  sequence *made;
  int64_t begin = 0;
  BERTH__TRY(sequence_make(call, p->n, &made, err));
  berth_value *values = made->values;
  for (size_t i = 0; i < p->n; i++) {
    const int64_t left = p->extent - begin, size = p->sizes != NULL ? p->sizes[i] : p->each < left ? p->each : left;
    if (size < 0 || size > left) return berth__fail(err, BERTH_MALFORMED, "the parts are not what there is to split");
    BERTH__TRY(sequence_cut(call, p->axis, begin, begin + size, p->is_flat, &values[i], err));
    begin += size;
  }
  return begin == p->extent ? BERTH_OK : berth__fail(err, BERTH_MALFORMED, "the parts are not what there is to split");
}

#define MOST_SIZES 4096u

static berth_status convert_split(berth__onnx_call *call, berth_error *err) {
  int64_t sizes[MOST_SIZES];
  uint32_t count = 0;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(sequence_want_tensor(call, 0, err));
  const berth__shape *shape = berth__onnx_shape(call, call->in[0]);
  const int64_t given = berth__onnx_int(call, "axis", 0), axis = given < 0 ? given + shape->rank : given;
  const berth_value by = berth__onnx_in(call, 1);
  if (axis < 0 || axis >= (int64_t)shape->rank)
    return berth__fail(err, BERTH_MALFORMED, "there is no axis %lld", (long long)given);
  pieces p = {.axis = axis, .extent = shape->dim[axis], .each = 1};
  if (p.extent < 0)
    return berth__onnx_unsupported(call, err,
                                   "how many tensors it gives depends on an extent that the file leaves open");
  if (by == BERTH_VALUE_NONE) {
    p.is_flat = berth__onnx_int(call, "keepdims", 1) == 0;
  } else {
    BERTH__TRY(sequence_want_tensor(call, 1, err));
    if (!berth__onnx_constant_ints(call, by, sizes, MOST_SIZES, &count) || count == 0)
      return berth__onnx_unsupported(call, err, "`split` must be a constant of at most %u numbers", MOST_SIZES);
    if (berth__onnx_shape(call, by)->rank != 0) p.sizes = sizes;
    p.each = sizes[0];
  }
  if (p.each < 1 && p.sizes == NULL) return berth__fail(err, BERTH_MALFORMED, "`split` is below 1");
  p.n = p.sizes != NULL ? count : (size_t)(p.extent / p.each + (p.extent % p.each != 0));
  return sequence_split(call, &p, err);
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
