/* layer_norm_grad and rms_norm_grad: the gradient of x from that of the result. With n = (x - mean) factor, where
 * factor is 1 / sqrt(variance + epsilon), and g = dy scale:
 *
 *   dx = factor (g - mean of g - n (mean of g n)),   without the mean of g for rms_norm
 *
 * An item is a row; the result may overwrite x or dy. */
#include "ops/norm.h"

static berth_status layer_norm_grad_infer(berth__infer *infer, berth_error *err) {
  berth__infer forward = *infer;
  forward.n_in = BERTH__NORM_GRAD_DY;
  forward.n_out = 1;
  BERTH__TRY(berth__family_layer_norm.infer(&forward, err));
  return berth__want_norm_gradient(infer, BERTH__NORM_GRAD_DY, err);
}

typedef struct grad_row {
  const berth_op_call *call;
  const berth_tensor *scale;
  berth__runs runs; /* over a row: x and scale */
  int64_t start, length;
  berth__moments moments;
  double mean, along; /* of g; of g n */
} grad_row;

static void layer_norm_grad_start(const berth_op_call *call, grad_row *r) {
  const berth_tensor *x = &call->in[BERTH__NORM_X];
  const uint32_t axis = berth__norm_first_axis(call), rank = x->rank - axis;
  int64_t stride[2][BERTH_MAX_RANK] = {{0}};
  const int64_t *strides[2] = {stride[0], stride[1]};
  r->call = call;
  r->scale = berth__optional(call, BERTH__NORM_SCALE);
  r->length = berth__norm_row_length(call);
  berth__contiguous_strides(rank, x->dim + axis, stride[0]);
  if (r->scale != NULL) berth__broadcast_strides(r->scale, rank, x->dim + axis, stride[1]);
  berth__runs_shape(&r->runs, rank, x->dim + axis, 2, strides);
}

/* Loads a stretch of the row: n and g. */
static int64_t layer_norm_grad_load(const grad_row *r, int64_t at, int64_t count, double *n, double *g) {
  const berth_tensor *x = &r->call->in[BERTH__NORM_X], *dy = &r->call->in[BERTH__NORM_GRAD_DY];
  const int64_t index = r->start + r->runs.index[0] + at;
  double by[BERTH__BLOCK];
  if (count > BERTH__BLOCK) count = BERTH__BLOCK;
  berth__gather_f64(n, x->type, x->data, index, 1, count);
  berth__gather_f64(g, dy->type, dy->data, index, 1, count);
  for (int64_t i = 0; i < count; i++) n[i] = (n[i] - r->moments.mean) * r->moments.factor;
  if (r->scale == NULL) return count;
  berth__gather_f64(by, r->scale->type, r->scale->data, r->runs.index[1] + at * r->runs.step[1], r->runs.step[1],
                    count);
  for (int64_t i = 0; i < count; i++) g[i] *= by[i];
  return count;
}

static void layer_norm_grad_sum(grad_row *r, bool is_centred) {
  double n[BERTH__BLOCK], g[BERTH__BLOCK];
  r->mean = r->along = 0;
  berth__runs_start(&r->runs, 0, r->length);
  while (berth__runs_next(&r->runs))
    for (int64_t at = 0, count; at < r->runs.count; at += count) {
      count = layer_norm_grad_load(r, at, r->runs.count - at, n, g);
      r->mean += berth__block_sum(g, count);
      for (int64_t i = 0; i < count; i++) n[i] *= g[i];
      r->along += berth__block_sum(n, count);
    }
  r->mean = is_centred ? r->mean / (double)r->length : 0;
  r->along /= (double)r->length;
}

static void layer_norm_grad_write(grad_row *r) {
  const berth_tensor *out = &r->call->out[0];
  double n[BERTH__BLOCK], g[BERTH__BLOCK];
  berth__runs_start(&r->runs, 0, r->length);
  while (berth__runs_next(&r->runs))
    for (int64_t at = 0, count; at < r->runs.count; at += count) {
      count = layer_norm_grad_load(r, at, r->runs.count - at, n, g);
      for (int64_t i = 0; i < count; i++) g[i] = r->moments.factor * (g[i] - r->mean - n[i] * r->along);
      berth__scatter(BERTH__CLASS_F64, g, out->type, out->data, r->start + r->runs.index[0] + at, 1, count);
    }
}

static berth_status layer_norm_grad_kernel(const berth_op_call *call, berth_error *err) {
  const bool is_centred = berth__call_code(call) == BERTH__OP_layer_norm_grad;
  grad_row r = {0};
  (void)err;
  layer_norm_grad_start(call, &r);
  for (int64_t row = call->begin; row < call->end; row++) {
    r.start = row * r.length;
    r.moments = berth__moments_of(&call->in[BERTH__NORM_X], r.start, r.length, call->attrs[BERTH__LAYER_NORM_EPSILON].f,
                                  is_centred);
    layer_norm_grad_sum(&r, is_centred);
    layer_norm_grad_write(&r);
  }
  return BERTH_OK;
}

const berth__family berth__family_layer_norm_grad = {.attrs = berth__layer_norm_attrs,
                                                     .n_attrs = BERTH__LAYER_NORM_ATTRS,
                                                     .infer = layer_norm_grad_infer,
                                                     .items = berth__norm_rows,
                                                     .kernel = layer_norm_grad_kernel,
                                                     .may_lack = 1u << BERTH__NORM_SCALE};
