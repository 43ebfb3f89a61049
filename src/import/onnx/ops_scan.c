/* Scan: a loop over slices of its operands (ops_control.c says which loops are unrolled). Before opset 9 it has a batch
 * axis, and is always unrolled. */
#include "import/onnx/control.h"

typedef struct scan {
  berth__onnx_rounds r;
  size_t n_inputs; /* scanned ones; n_carried states come before them */
  const int64_t *in_axes, *in_reversed, *out_axes, *out_reversed;
  uint32_t n_in_axes, n_in_reversed, n_out_axes, n_out_reversed;
} scan;

static int64_t scan_entry(const int64_t *list, uint32_t n, size_t index) { return index < n ? list[index] : 0; }

static berth_status scan_axis(const berth__onnx_call *call, const scan *s, const berth_value *in, size_t index,
                              int64_t *axis, berth_error *err) {
  uint32_t rank = berth__onnx_shape(call, in[s->r.n_carried + index])->rank, checked;
  BERTH__TRY(berth__want_axis(scan_entry(s->in_axes, s->n_in_axes, index), rank, &checked, err));
  *axis = checked;
  return BERTH_OK;
}

static berth_status scan_slice(berth__onnx_call *call, const scan *s, const berth_value *in, size_t index,
                               int64_t round, berth_value *out, berth_error *err) {
  int64_t axis, at = scan_entry(s->in_reversed, s->n_in_reversed, index) != 0 ? s->r.count - 1 - round : round,
                end = at + 1;
  BERTH__TRY(scan_axis(call, s, in, index, &axis, err));
  berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &at, 1),
                        berth_attr_ints("ends", &end, 1)};
  BERTH__TRY(berth__onnx_emit(call, "narrow", &in[s->r.n_carried + index], 1, attrs, 3, out, 1, err));
  return berth__onnx_emit(call, "squeeze", out, 1, attrs, 1, out, 1, err);
}

static berth_status scan_outputs(berth__onnx_call *call, const scan *s, berth_value *out, size_t n_out,
                                 berth_error *err) {
  const berth__onnx_rounds *r = &s->r;
  for (size_t i = 0; i < n_out; i++) {
    if (i < r->n_carried) {
      out[i] = r->in[i];
      continue;
    }
    size_t index = i - r->n_carried;
    berth_value *parts = r->scanned + index * (size_t)r->count;
    if (r->count == 0) return berth__onnx_unsupported(call, err, "it has no rounds, so its output %zu has no shape", i);
    uint32_t rank = berth__onnx_shape(call, parts[0])->rank + 1, axis;
    BERTH__TRY(berth__want_axis(scan_entry(s->out_axes, s->n_out_axes, index), rank, &axis, err));
    BERTH__TRY(berth__onnx_stack(call, parts, r->count, axis,
                                 scan_entry(s->out_reversed, s->n_out_reversed, index) != 0, &out[i], err));
  }
  return BERTH_OK;
}

static berth_status scan_once(berth__onnx_call *call, scan *s, const berth_value *in, berth_value *out, size_t n_out,
                              berth_error *err) {
  berth__onnx_rounds *r = &s->r;
  memcpy(r->in, in, r->n_carried * sizeof *in);
  for (int64_t round = 0; round < r->count; round++) {
    BERTH__TRY(berth__onnx_rounds_check(call, r->count, err));
    for (size_t i = 0; i < s->n_inputs; i++)
      BERTH__TRY(scan_slice(call, s, in, i, round, &r->in[r->n_carried + i], err));
    BERTH__TRY(berth__onnx_inner(call, r->body, r->in, r->body->n_inputs, r->out, r->body->n_outputs, err));
    memcpy(r->in, r->out, r->n_carried * sizeof *r->in);
    for (size_t i = 0; i < r->n_scanned; i++)
      r->scanned[i * (size_t)r->count + (size_t)round] = r->out[r->n_carried + i];
  }
  return scan_outputs(call, s, out, n_out, err);
}

/* Before opset 9, all operands and results have a leading batch axis, and every batch entry is scanned separately. */
static berth_status scan_batch(berth__onnx_call *call, scan *s, const berth_value *in, size_t n_in, int64_t batch,
                               berth_error *err) {
  berth_context *ctx = call->graph->ctx;
  berth_value *one = berth__alloc_array(ctx, n_in + call->n_out * ((size_t)batch + 1), sizeof *one);
  if (one == NULL) return berth__fail_nomem(err, "a Scan");
  berth_value *out = one + n_in, *parts = out + call->n_out;
  berth_status status = BERTH_OK;
  for (int64_t b = 0; b < batch && status == BERTH_OK; b++) {
    int64_t axis = 0, end = b + 1;
    berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &b, 1),
                          berth_attr_ints("ends", &end, 1)};
    for (size_t i = 0; i < n_in && status == BERTH_OK; i++) {
      status = berth__onnx_emit(call, "narrow", &in[i], 1, attrs, 3, &one[i], 1, err);
      if (status == BERTH_OK) status = berth__onnx_emit(call, "squeeze", &one[i], 1, attrs, 1, &one[i], 1, err);
    }
    if (status == BERTH_OK) status = scan_once(call, s, one, out, call->n_out, err);
    for (size_t i = 0; i < call->n_out; i++) parts[i * (size_t)batch + (size_t)b] = out[i];
  }
  for (size_t i = 0; i < call->n_out && status == BERTH_OK; i++)
    status = berth__onnx_stack(call, parts + i * (size_t)batch, batch, 0, false, &call->out[i], err);
  berth__free(ctx, one);
  return status;
}

static void read_scan_lists(const berth__onnx_call *call, scan *s, bool is_old) {
  s->in_reversed = berth__onnx_ints(call, is_old ? "directions" : "scan_input_directions", &s->n_in_reversed);
  if (is_old) return;
  s->in_axes = berth__onnx_ints(call, "scan_input_axes", &s->n_in_axes);
  s->out_axes = berth__onnx_ints(call, "scan_output_axes", &s->n_out_axes);
  s->out_reversed = berth__onnx_ints(call, "scan_output_directions", &s->n_out_reversed);
}

/* The extent of a scanned operand along the axis that is scanned. */
static berth_status scan_extent(const berth__onnx_call *call, const scan *s, const berth_value *in, size_t index,
                                bool is_old, int64_t *extent, berth_error *err) {
  const berth__shape *shape = berth__onnx_shape(call, in[s->r.n_carried + index]);
  int64_t axis = 1;
  if (!is_old) BERTH__TRY(scan_axis(call, s, in, index, &axis, err));
  if (is_old && shape->rank < 2) return berth__fail(err, BERTH_MALFORMED, "what it scans has no batch axis");
  *extent = shape->dim[axis];
  return BERTH_OK;
}

/* The scanned length and, before opset 9, the batch; either may be unknown. */
static berth_status scan_length(const berth__onnx_call *call, const scan *s, const berth_value *in, bool is_old,
                                int64_t *count, int64_t *batch, berth_error *err) {
  BERTH__TRY(scan_extent(call, s, in, 0, is_old, count, err));
  for (size_t i = 1; i < s->n_inputs; i++) {
    int64_t extent = 0, same;
    BERTH__TRY(scan_extent(call, s, in, i, is_old, &extent, err));
    BERTH__TRY(berth__same_dim(*count, extent, "the operands that are scanned", &same, err));
  }
  *batch = is_old ? berth__onnx_shape(call, in[s->r.n_carried])->dim[0] : 1;
  if (!is_old) return BERTH_OK;
  if (!berth__dim_is_fixed(*count) || !berth__dim_is_fixed(*batch))
    return berth__onnx_unsupported(call, err, "before opset 9 the length that it scans must be a constant");
  if (*batch == 0 || *batch > BERTH__ONNX_MAX_ROUNDS)
    return berth__onnx_unsupported(call, err, "its batch is %lld", (long long)*batch);
  return berth__onnx_rounds_check(call, *count, err);
}

static berth_status scan_unrolled(berth__onnx_call *call, scan *s, const berth_value *in, size_t n_in, bool is_old,
                                  int64_t batch, berth_error *err) {
  BERTH__TRY(berth__onnx_rounds_check(call, s->r.count, err));
  berth_status status = berth__onnx_rounds_create(call, &s->r, err);
  if (status == BERTH_OK)
    status = is_old ? scan_batch(call, s, in, n_in, batch, err) : scan_once(call, s, in, call->out, call->n_out, err);
  berth__onnx_rounds_free(call, &s->r);
  return status;
}

/* Moves the rows of a stacked result to its axis, in its direction. */
static berth_status turn_stacked(berth__onnx_call *call, const scan *s, size_t index, berth_value *out,
                                 berth_error *err) {
  uint32_t rank = berth__onnx_shape(call, *out)->rank, axis;
  int64_t first = 0, start = -1, end = INT64_MIN, step = -1, perm[BERTH_MAX_RANK];
  const berth_attr backwards[] = {berth_attr_ints("axes", &first, 1), berth_attr_ints("starts", &start, 1),
                                  berth_attr_ints("ends", &end, 1), berth_attr_ints("steps", &step, 1)};
  BERTH__TRY(berth__want_axis(scan_entry(s->out_axes, s->n_out_axes, index), rank, &axis, err));
  if (scan_entry(s->out_reversed, s->n_out_reversed, index) != 0)
    BERTH__TRY(berth__onnx_emit(call, "narrow", out, 1, backwards, 4, out, 1, err));
  if (axis == 0) return BERTH_OK;
  for (uint32_t i = 0; i < rank; i++) perm[i] = i < axis ? (int64_t)i + 1 : i == axis ? 0 : (int64_t)i;
  const berth_attr order = berth_attr_ints("perm", perm, rank);
  return berth__onnx_emit(call, "transpose", out, 1, &order, 1, out, 1, err);
}

static berth_status make_slices(const berth__onnx_call *call, const scan *s, const berth_value *in,
                                berth__onnx_slice *slices, berth_error *err) {
  for (size_t i = 0; i < s->n_inputs; i++) {
    int64_t axis;
    BERTH__TRY(scan_axis(call, s, in, i, &axis, err));
    slices[i] = (berth__onnx_slice){.value = in[s->r.n_carried + i],
                                    .axis = axis,
                                    .is_reversed = scan_entry(s->in_reversed, s->n_in_reversed, i) != 0};
  }
  return BERTH_OK;
}

static berth_status scan_rolled(berth__onnx_call *call, const scan *s, const berth_value *in, berth_error *err) {
  berth__onnx_loop loop = {.body = s->r.body, .condition = BERTH_VALUE_NONE, .first = in, .n_carried = s->r.n_carried};
  berth__onnx_slice *slices = berth__alloc_array(call->graph->ctx, s->n_inputs, sizeof *slices);
  if (slices == NULL) return berth__fail_nomem(err, "a Scan");
  berth_status status = make_slices(call, s, in, slices, err);
  if (status == BERTH_OK) {
    const berth_attr extent[] = {berth_attr_int("start", slices[0].axis), berth_attr_int("end", slices[0].axis + 1)};
    status = berth__onnx_emit(call, "shape", &slices[0].value, 1, extent, 2, &loop.trips, 1, err);
  }
  if (status == BERTH_OK) status = berth__onnx_roll_scan(call, &loop, slices, s->n_inputs, err);
  for (size_t i = s->r.n_carried; i < call->n_out && status == BERTH_OK; i++)
    if (call->out[i] != BERTH_VALUE_NONE) status = turn_stacked(call, s, i - s->r.n_carried, &call->out[i], err);
  berth__free(call->graph->ctx, slices);
  return status;
}

/* Few iterations are unrolled, and so are those of a body that cannot be a loop. */
static berth_status convert_new_scan(berth__onnx_call *call, scan *s, const berth_value *in, size_t n_in,
                                     berth_error *err) {
  const bool is_known = berth__dim_is_fixed(s->r.count);
  const berth__graph_mark mark = berth__graph_mark_now(call->graph);
  if (is_known && s->r.count <= BERTH__ONNX_FEW_ROUNDS && s->r.count != 0)
    return scan_unrolled(call, s, in, n_in, false, 1, err);
  berth_status status = scan_rolled(call, s, in, err);
  bool is_fine = status == BERTH_OK && !berth__onnx_has_open_shape(call->graph, mark.n_values);
  if (is_fine || status == BERTH_NOMEM || !is_known || s->r.count > BERTH__ONNX_MAX_ROUNDS) return status;
  berth__graph_roll_back(call->graph, &mark);
  return scan_unrolled(call, s, in, n_in, false, 1, err);
}

static berth_status check_scan(const berth__onnx_call *call, const scan *s, const berth_value *in, size_t n_in,
                               int64_t scanned, berth_error *err) {
  const berth__onnx_graph *body = s->r.body;
  if (scanned < 1 || (size_t)scanned > n_in || body->n_inputs != n_in || call->n_out > body->n_outputs ||
      body->n_outputs < n_in - (size_t)scanned)
    return berth__fail(err, BERTH_MALFORMED, "its body has %zu input%s and %zu output%s, which do not fit its own",
                       body->n_inputs, berth__plural(body->n_inputs), body->n_outputs, berth__plural(body->n_outputs));
  for (size_t i = 0; i < n_in; i++)
    if (in[i] == BERTH_VALUE_NONE) return berth__fail(err, BERTH_MALFORMED, "operand %zu is missing", i);
  return BERTH_OK;
}

berth_status berth__onnx_scan(berth__onnx_call *call, berth_error *err) {
  scan s = {0};
  bool is_old = call->opset < 9;
  int64_t scanned = berth__onnx_int(call, "num_scan_inputs", 0), batch = 1;
  const berth_value *in = call->in + (is_old ? 1 : 0);
  size_t n_in = call->n_in - (is_old && call->n_in > 0 ? 1 : 0);
  BERTH__TRY(berth__onnx_inner_graph(call, "body", &s.r.body, err));
  if (is_old && berth__onnx_in(call, 0) != BERTH_VALUE_NONE)
    return berth__onnx_unsupported(call, err, "the lengths of its sequences are not supported");
  BERTH__TRY(check_scan(call, &s, in, n_in, scanned, err));
  s.n_inputs = (size_t)scanned;
  s.r.n_carried = n_in - s.n_inputs;
  s.r.n_scanned = s.r.body->n_outputs - s.r.n_carried;
  read_scan_lists(call, &s, is_old);
  BERTH__TRY(scan_length(call, &s, in, is_old, &s.r.count, &batch, err));
  if (is_old) return scan_unrolled(call, &s, in, n_in, true, batch, err);
  return convert_new_scan(call, &s, in, n_in, err);
}
