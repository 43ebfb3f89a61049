/* Loops that stay loops: a loop_begin, the body once, a loop_end. */
#include "import/onnx/control.h"

typedef struct rolling {
  berth__onnx_call *call;
  const berth__onnx_loop *loop;
  berth_value trips;
  size_t n_leading;      /* results of the body before what is carried: a Loop's condition */
  size_t n_scanned;      /* results that are scanned and asked for */
  berth_value *begin;    /* results of the loop_begin */
  berth_value *in, *out; /* of the body */
  berth_value *end_in;   /* of the loop_end */
  berth_value *end_out;
} rolling;

static bool is_asked_for(const rolling *r, size_t output) {
  return output < r->call->n_out && r->call->node->outputs[output].size != 0;
}

static berth_status onnx_rolled_allocate(rolling *r, berth_error *err) {
  size_t k = r->loop->n_carried;
  for (size_t i = k; i < r->call->n_out; i++) r->n_scanned += is_asked_for(r, i);
  size_t n = (2 + k) + r->loop->body->n_inputs + r->loop->body->n_outputs + (4 + 2 * k + r->n_scanned) +
             (2 + k + r->n_scanned);
  r->begin = berth__alloc_array(r->call->graph->ctx, n, sizeof *r->begin);
  if (r->begin == NULL) return berth__fail_nomem(err, "a loop");
  r->in = r->begin + 2 + k;
  r->out = r->in + r->loop->body->n_inputs;
  r->end_in = r->out + r->loop->body->n_outputs;
  r->end_out = r->end_in + 4 + 2 * k + r->n_scanned;
  return BERTH_OK;
}

static berth_status onnx_rolled_begin(rolling *r, berth_error *err) {
  const int64_t no_bound = INT64_MAX;
  berth_value *in = r->end_in; /* not needed yet */
  r->trips = r->loop->trips;
  in[BERTH__LOOP_CONDITION] = r->loop->condition;
  if (r->trips == BERTH_VALUE_NONE) BERTH__TRY(berth__onnx_list(r->call, &no_bound, 1, &r->trips, err));
  if (in[BERTH__LOOP_CONDITION] == BERTH_VALUE_NONE)
    BERTH__TRY(berth__onnx_scalar(r->call, BERTH_BOOL, 1, &in[BERTH__LOOP_CONDITION], err));
  in[BERTH__LOOP_TRIPS] = r->trips;
  memcpy(in + BERTH__LOOP_CARRIED, r->loop->first, r->loop->n_carried * sizeof *in);
  return berth__onnx_emit(r->call, "loop_begin", in, 2 + r->loop->n_carried, NULL, 0, r->begin, 2 + r->loop->n_carried,
                          err);
}

static berth_status end(rolling *r, berth_value condition, berth_error *err) {
  const size_t k = r->loop->n_carried;
  berth_value *in = r->end_in;
  in[BERTH__LOOP_ROUND] = r->begin[BERTH__LOOP_ROUND];
  in[BERTH__LOOP_STARTS] = r->begin[BERTH__LOOP_STARTS];
  in[BERTH__LOOP_END_TRIPS] = r->trips;
  in[BERTH__LOOP_END_CONDITION] = condition;
  memcpy(in + BERTH__LOOP_END_CARRIED, r->begin + BERTH__LOOP_CARRIED, k * sizeof *in);
  memcpy(in + BERTH__LOOP_END_CARRIED + k, r->out + r->n_leading, k * sizeof *in);
  size_t n_in = BERTH__LOOP_END_CARRIED + 2 * k, n_out = BERTH__LOOP_LAST + k;
  for (size_t i = k; i < r->call->n_out; i++)
    if (is_asked_for(r, i)) in[n_in++] = r->out[r->n_leading + i];
  BERTH__TRY(berth__onnx_emit(r->call, "loop_end", in, n_in, NULL, 0, r->end_out, n_out + r->n_scanned, err));
  for (size_t i = 0; i < r->call->n_out; i++) {
    if (i < k)
      r->call->out[i] = r->end_out[BERTH__LOOP_LAST + i];
    else if (is_asked_for(r, i))
      r->call->out[i] = r->end_out[n_out++];
  }
  return BERTH_OK;
}

static berth_status convert_body(rolling *r, berth_error *err) {
  const berth__onnx_graph *body = r->loop->body;
  return berth__onnx_inner(r->call, body, r->in, body->n_inputs, r->out, body->n_outputs, err);
}

/* The round's number may be declared as a list of one. */
static berth_status number_of_round(rolling *r, berth_value *out, berth_error *err) {
  const berth__onnx_value *declared = &r->loop->body->inputs[0];
  const int64_t axis = 0;
  const berth_attr axes = berth_attr_ints("axes", &axis, 1);
  *out = r->begin[BERTH__LOOP_ROUND];
  if (!declared->has_shape || declared->rank != 1) return BERTH_OK;
  return berth__onnx_emit(r->call, "unsqueeze", out, 1, &axes, 1, out, 1, err);
}

/* A round runs only while the condition holds, so that it is true inside. */
static berth_status roll_loop(rolling *r, berth_error *err) {
  BERTH__TRY(onnx_rolled_begin(r, err));
  BERTH__TRY(number_of_round(r, &r->in[0], err));
  BERTH__TRY(berth__onnx_scalar(r->call, BERTH_BOOL, 1, &r->in[1], err));
  memcpy(r->in + 2, r->begin + BERTH__LOOP_CARRIED, r->loop->n_carried * sizeof *r->in);
  BERTH__TRY(convert_body(r, err));
  return end(r, r->out[0], err);
}

berth_status berth__onnx_roll_loop(berth__onnx_call *call, const berth__onnx_loop *loop, berth_error *err) {
  rolling r = {.call = call, .loop = loop, .n_leading = 1};
  BERTH__TRY(onnx_rolled_allocate(&r, err));
  berth_status status = roll_loop(&r, err);
  berth__free(call->graph->ctx, r.begin);
  return status;
}

static berth_status take_slice(rolling *r, const berth__onnx_slice *slice, berth_value *out, berth_error *err) {
  const berth_attr axis = berth_attr_int("axis", slice->axis);
  berth_value in[2] = {slice->value, r->begin[BERTH__LOOP_ROUND]};
  if (slice->is_reversed) {
    berth_value one, left;
    BERTH__TRY(berth__onnx_scalar(r->call, BERTH_I64, 1, &one, err));
    BERTH__TRY(berth__onnx_unary(r->call, "squeeze", r->trips, &left, err));
    BERTH__TRY(berth__onnx_binary(r->call, "sub", left, one, &left, err));
    BERTH__TRY(berth__onnx_binary(r->call, "sub", left, r->begin[BERTH__LOOP_ROUND], &in[1], err));
  }
  return berth__onnx_emit(r->call, "gather", in, 2, &axis, 1, out, 1, err);
}

static berth_status roll_scan(rolling *r, const berth__onnx_slice *slices, size_t n_slices, berth_error *err) {
  const size_t k = r->loop->n_carried;
  berth_value always;
  BERTH__TRY(onnx_rolled_begin(r, err));
  BERTH__TRY(berth__onnx_scalar(r->call, BERTH_BOOL, 1, &always, err));
  memcpy(r->in, r->begin + BERTH__LOOP_CARRIED, k * sizeof *r->in);
  for (size_t i = 0; i < n_slices; i++) BERTH__TRY(take_slice(r, &slices[i], &r->in[k + i], err));
  BERTH__TRY(convert_body(r, err));
  return end(r, always, err);
}

berth_status berth__onnx_roll_scan(berth__onnx_call *call, const berth__onnx_loop *loop,
                                   const berth__onnx_slice *slices, size_t n_slices, berth_error *err) {
  rolling r = {.call = call, .loop = loop};
  BERTH__TRY(onnx_rolled_allocate(&r, err));
  berth_status status = roll_scan(&r, slices, n_slices, err);
  berth__free(call->graph->ctx, r.begin);
  return status;
}
