#include "import/onnx/sequence.h"

#include "import/onnx/chain.h"
#include "import/onnx/compose.h"
#include "import/onnx/converter.h"

#define MOST_IN_SEQUENCES (1u << 22) /* values in all sequences of a model: a small file could insert without bound */

typedef berth__onnx_sequence sequence;

static berth_status sequence_new(berth__onnx_call *call, const sequence *what, berth_value *out, berth_error *err) {
  berth__onnx_converter *c = call->converter;
  BERTH__TRY(BERTH__RESERVE(c->graph->ctx, c->sequences, c->sequences_capacity, c->n_sequences + 1, err));
  c->sequences[c->n_sequences] = *what;
  *out = BERTH__ONNX_SEQUENCES + (berth_value)c->n_sequences++;
  return BERTH_OK;
}

berth_status berth__onnx_sequence_list(berth__onnx_call *call, size_t n, berth_value *out, berth_value **values,
                                       berth_error *err) {
  berth__onnx_converter *c = call->converter;
  if (n >= MOST_IN_SEQUENCES - c->n_in_sequences)
    return berth__fail(err, BERTH_UNSUPPORTED, "the sequences of the model have more than %u tensors",
                       MOST_IN_SEQUENCES);
  *values = berth__alloc_array(c->graph->ctx, n + 1, sizeof **values); /* never NULL, even if empty */
  if (*values == NULL) return berth__fail_nomem(err, "a sequence");
  const sequence made = {
      .values = *values, .n = n, .stacked = BERTH_VALUE_NONE, .is_list = true, .before = BERTH_VALUE_NONE};
  const berth_status status = sequence_new(call, &made, out, err);
  if (status != BERTH_OK) berth__free(c->graph->ctx, *values);
  if (status == BERTH_OK) c->n_in_sequences += n + 1; /* empty ones count as well */
  return status;
}

berth_status berth__onnx_sequence_slices(berth__onnx_call *call, berth_value stacked, berth_value *out,
                                         berth_error *err) {
  return sequence_new(call, &(sequence){.stacked = stacked, .before = BERTH_VALUE_NONE}, out, err);
}

berth_status berth__onnx_sequence_unknown(berth__onnx_call *call, berth_value *out, berth_error *err) {
  berth_value *values;
  BERTH__TRY(berth__onnx_sequence_list(call, 0, out, &values, err));
  call->converter->sequences[*out - BERTH__ONNX_SEQUENCES].before = *out;
  return BERTH_OK;
}

sequence berth__onnx_sequence_of(const berth__onnx_call *call, berth_value value) {
  return call->converter->sequences[value - BERTH__ONNX_SEQUENCES];
}

berth_status berth__onnx_sequence_in(const berth__onnx_call *call, size_t k, sequence *out, berth_error *err) {
  const berth_value value = berth__onnx_in(call, k);
  *out = (sequence){0};
  if (!berth__onnx_is_sequence(value)) return berth__fail(err, BERTH_MALFORMED, "operand %zu is not a sequence", k);
  *out = berth__onnx_sequence_of(call, value);
  return BERTH_OK;
}

berth_status berth__onnx_sequence_fail_read(const berth__onnx_call *call, const sequence *from, berth_error *err) {
  call->converter->sequences[from->before - BERTH__ONNX_SEQUENCES].is_read = true;
  return berth__onnx_unsupported(call, err,
                                 "it reads a sequence to which the rounds of a loop add, whose number must be known "
                                 "when the file is read for this (and at most 1000)");
}

/* ---- One value for all tensors ---- */

static bool is_like(const berth_graph *graph, berth_value a, berth_value b) {
  const berth__shape *x = &graph->values[a].shape, *y = &graph->values[b].shape;
  if (graph->values[a].type != graph->values[b].type || x->rank != y->rank) return false;
  for (uint32_t i = 0; i < x->rank; i++)
    if (x->dim[i] != y->dim[i] && berth__dim_is_fixed(x->dim[i]) && berth__dim_is_fixed(y->dim[i])) return false;
  return true;
}

static berth_status stack_list(berth__onnx_call *call, const sequence *from, berth_value *parts, berth_value *out,
                               berth_error *err) {
  const int64_t first = 0;
  const berth_attr axis = berth_attr_int("axis", 0), axes = berth_attr_ints("axes", &first, 1);
  for (size_t i = 0; i < from->n; i++) {
    if (!is_like(call->graph, from->values[0], from->values[i]))
      return berth__onnx_unsupported(call, err,
                                     "tensors 0 and %zu of a sequence differ in type or shape; how many there are and "
                                     "which one is taken must then be known when the file is read",
                                     i);
    BERTH__TRY(berth__onnx_emit(call, "unsqueeze", &from->values[i], 1, &axes, 1, &parts[i], 1, err));
  }
  return berth__onnx_emit(call, "concat", parts, from->n, &axis, 1, out, 1, err);
}

berth_status berth__onnx_sequence_stack(berth__onnx_call *call, const sequence *from, berth_value *out,
                                        berth_error *err) {
  *out = from->stacked;
  if (*out != BERTH_VALUE_NONE) return BERTH_OK;
  if (from->n == 0)
    return berth__onnx_unsupported(call, err, "a sequence is empty, and nothing says what its tensors look like");
  berth_value *parts = berth__alloc_array(call->graph->ctx, from->n, sizeof *parts);
  if (parts == NULL) return berth__fail_nomem(err, "a sequence");
  const berth_status status = stack_list(call, from, parts, out, err);
  berth__free(call->graph->ctx, parts);
  return status;
}

berth_status berth__onnx_sequence_append(berth__onnx_call *call, const sequence *a, berth_value b, berth_value *out,
                                         berth_error *err) {
  const berth_attr axis = berth_attr_int("axis", 0);
  berth_value both[2] = {BERTH_VALUE_NONE, b}, joined = b;
  if (!a->is_list || a->n != 0) {
    BERTH__TRY(berth__onnx_sequence_stack(call, a, &both[0], err));
    if (berth__onnx_value_type(call, both[0]) != berth__onnx_value_type(call, b) ||
        berth__onnx_shape(call, both[0])->rank != berth__onnx_shape(call, b)->rank)
      return berth__fail(err, BERTH_MALFORMED, "a tensor has another type or rank than those of its sequence");
    BERTH__TRY(berth__onnx_emit(call, "concat", both, 2, &axis, 1, &joined, 1, err));
  }
  BERTH__TRY(berth__onnx_sequence_slices(call, joined, out, err));
  call->converter->sequences[*out - BERTH__ONNX_SEQUENCES].before = a->before;
  return BERTH_OK;
}

/* ---- Slices along another axis ---- */

berth_status berth__onnx_move_first(berth__onnx_call *call, berth_value x, uint32_t axis, berth_value *out,
                                    berth_error *err) {
  int64_t perm[BERTH_MAX_RANK];
  const uint32_t rank = berth__onnx_shape(call, x)->rank;
  for (uint32_t d = 0; d < rank; d++) perm[d] = d < axis ? d + 1 : d == axis ? 0 : d;
  *out = x;
  return axis == 0 ? BERTH_OK : berth__onnx_listed(call, "transpose", x, "perm", perm, rank, out, err);
}

/* The extents of x with those of `axis` and the next as one, as far as they have numbers or names; the merged one is -1
 * where it has none. False if the list would not be enough. */
static bool merged_dims(const berth_graph *graph, const berth__shape *x, uint32_t axis, berth_dim *dims) {
  const int64_t a = x->dim[axis], b = x->dim[axis + 1];
  int64_t merged;
  bool is_known = berth__dim_is_fixed(a) && berth__dim_is_fixed(b) && berth__dim_mul(a, b, &merged, NULL) == BERTH_OK;
  for (uint32_t d = 0; d + 1 < x->rank; d++) {
    const int64_t dim = x->dim[d < axis ? d : d + 1];
    dims[d] = (berth_dim){.extent = is_known ? merged : -1};
    if (d == axis) continue;
    if (berth__dim_is_fixed(dim) && (dim != 0 || is_known))
      dims[d] = (berth_dim){.extent = dim};
    else if (berth__dim_is_named(dim))
      dims[d] = (berth_dim){.name = graph->dims[berth__dim_index(dim)]};
    else
      return false;
  }
  return true;
}

/* For extents without a name: their list is computed. */
static berth_status merge_computed(berth__onnx_call *call, berth_value x, uint32_t axis, berth_value *out,
                                   berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  berth_value parts[BERTH_MAX_RANK];
  const uint32_t rank = berth__onnx_shape(call, x)->rank;
  for (uint32_t d = 0; d + 1 < rank; d++) {
    parts[d] = berth__chain_extent(&c, x, d <= axis ? d : d + 1);
    if (d == axis) parts[d] = berth__chain_binary(&c, "mul", parts[d], berth__chain_extent(&c, x, axis + 1));
  }
  const berth_attr along = berth_attr_int("axis", 0), zeros = berth_attr_int("allowzero", 1);
  const berth_value in[] = {x, berth__chain_emit(&c, "concat", parts, rank - 1, &along, 1)};
  *out = berth__chain_emit(&c, "reshape", in, 2, &zeros, 1);
  return c.status;
}

berth_status berth__onnx_join_first(berth__onnx_call *call, berth_value x, uint32_t axis, berth_value *out,
                                    berth_error *err) {
  berth_dim dims[BERTH_MAX_RANK];
  BERTH__TRY(berth__onnx_move_first(call, x, axis, &x, err));
  const berth__shape *shape = berth__onnx_shape(call, x);
  if (!merged_dims(call->graph, shape, axis, dims)) return merge_computed(call, x, axis, out, err);
  const berth_attr attrs[] = {berth_attr_dims("shape", dims, shape->rank - 1), berth_attr_int("allowzero", 1)};
  return berth__onnx_emit(call, "reshape", &x, 1, attrs, 2, out, 1, err);
}
