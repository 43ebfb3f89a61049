/* layer_norm, rms_norm, group_norm and batch_norm. */
#include "device/cpu/kernels/norm_moments.h"

#define ITEM 8192 /* elements */

/* ---- Rows ----------------------------------------------------------------------------------------------------- */

/* y = (x - mean) * factor * scale + bias, with one scale and bias for the whole row. */
static void scale_run(float *y, const float *x, int64_t n, const norm_moments *m, float scale, float bias) {
  const vf mean = vf_set1(m->mean), factor = vf_set1(m->factor * scale);
  const vf shift = vf_fnma(vf_set1(m->rest), factor, vf_set1(bias));
  int64_t i = 0;
  for (; i + VF_LANES <= n; i += VF_LANES) vf_store(y + i, vf_fma(vf_load(x + i) - mean, factor, shift));
  if (i < n) vf_store_n(y + i, vf_fma(vf_load_n(x + i, n - i) - mean, factor, shift), n - i);
}

/* The same with a scale and a bias for each element; NULL: 1 and 0. */
static void scale_row(float *y, const float *x, int64_t n, const norm_moments *m, const float *scale,
                      const float *bias) {
  const vf mean = vf_set1(m->mean), factor = vf_set1(m->factor), one = vf_set1(1.0f);
  const vf shift = vf_set1(-m->rest * m->factor);
  int64_t i = 0;
  for (; i + VF_LANES <= n; i += VF_LANES) {
    const vf normal = vf_fma(vf_load(x + i) - mean, factor, shift);
    vf_store(y + i, vf_fma(normal, scale ? vf_load(scale + i) : one, bias ? vf_load(bias + i) : vf_zero()));
  }
  if (i == n) return;
  const vf normal = vf_fma(vf_load_n(x + i, n - i) - mean, factor, shift);
  const vf by = scale ? vf_load_n(scale + i, n - i) : one, plus = bias ? vf_load_n(bias + i, n - i) : vf_zero();
  vf_store_n(y + i, vf_fma(normal, by, plus), n - i);
}

static float norm_kernel_value_at(const berth_tensor *tensor, int64_t index, float otherwise) {
  return tensor != NULL ? ((const float *)tensor->data)[index] : otherwise;
}

/* ---- layer_norm, rms_norm ------------------------------------------------------------------------------------- */

static bool takes_rows(const berth_op_call *call) {
  const int64_t length = berth__norm_row_length(call);
  return call->in[BERTH__NORM_X].type == BERTH_F32 && length > 0 && norm_is_row(call, BERTH__NORM_SCALE, length) &&
         norm_is_row(call, BERTH__NORM_BIAS, length);
}

static int64_t norm_kernel_rows_each(int64_t length) { return length < ITEM ? ITEM / length : 1; }

static int64_t norm_kernel_row_items(const berth_op_call *call) {
  const int64_t length = berth__norm_row_length(call), each = norm_kernel_rows_each(length);
  return (berth__count(&call->in[BERTH__NORM_X]) / length + each - 1) / each;
}

static berth_status run_rows(const berth_op_call *call, berth_error *err) {
  const berth_tensor *scale = berth__optional(call, BERTH__NORM_SCALE), *bias = berth__optional(call, BERTH__NORM_BIAS);
  const bool centred = berth__call_code(call) == BERTH__OP_layer_norm;
  const int64_t length = berth__norm_row_length(call), each = norm_kernel_rows_each(length),
                rows = berth__count(&call->in[BERTH__NORM_X]) / length;
  const int64_t end = call->end * each < rows ? call->end * each : rows;
  (void)err;
  for (int64_t row = call->begin * each; row < end; row++) {
    const float *x = (const float *)call->in[BERTH__NORM_X].data + row * length;
    const norm_moments m = norm_moments_of(x, length, call->attrs[BERTH__LAYER_NORM_EPSILON].f, centred);
    scale_row((float *)call->out[0].data + row * length, x, length, &m, scale ? scale->data : NULL,
              bias ? bias->data : NULL);
  }
  return BERTH_OK;
}

/* ---- Short rows ----------------------------------------------------------------------------------------------- */

/* Rows of a few elements, one per lane, so that VF_LANES rows cost as much as one. Element k of a row is at[k] of its
 * lane. The result of a row does not depend on its lane or on the other rows. */
#define SHORT 16 /* elements at most */

typedef struct short_rows {
  const float *x;
  float *y;
  int64_t length, count; /* of a row; number of rows, at most VF_LANES */
} short_rows;

static void norm_kernel_load_short(const short_rows *rows, vf *at) {
  const int64_t length = rows->length, last = rows->count - 1;
  int64_t start[VF_LANES]; /* unused lanes repeat the last row */
  for (int64_t lane = 0; lane < VF_LANES; lane++) start[lane] = (lane < last ? lane : last) * length;
  for (int64_t k = 0; k < length; k++) {
    float some[VF_LANES];
    for (int64_t lane = 0; lane < VF_LANES; lane++) some[lane] = rows->x[start[lane] + k];
    at[k] = vf_load(some);
  }
}

static void norm_kernel_store_short(const short_rows *rows, const vf *at) {
  const int64_t length = rows->length;
  for (int64_t k = 0; k < length; k++) {
    float some[VF_LANES];
    vf_store(some, at[k]);
    if (rows->count == VF_LANES) {
      for (int64_t lane = 0; lane < VF_LANES; lane++) rows->y[lane * length + k] = some[lane];
    } else {
      for (int64_t lane = 0; lane < rows->count; lane++) rows->y[lane * length + k] = some[lane];
    }
  }
}

/* Replaces x by (x - mean) / sqrt(variance + epsilon). */
static void norm_kernel_normalize_short(vf *at, int64_t n, double epsilon, bool centred) {
  const vf each = vf_set1(1.0f / (float)n);
  vf mean = vf_zero(), rest = vf_zero(), sum = vf_zero(), square = vf_zero();
  for (int64_t k = 0; k < n && centred; k++) mean += at[k];
  mean = mean * each;
  for (int64_t k = 0; k < n; k++) {
    at[k] = at[k] - mean;
    sum += at[k];
    square = vf_fma(at[k], at[k], square);
  }
  if (centred) rest = sum * each;
  const vf variance = vf_max(vf_zero(), vf_fnma(rest, rest, square * each));
  const vf factor = vf_set1(1.0f) / vf_sqrt(variance + vf_set1((float)epsilon));
  for (int64_t k = 0; k < n; k++) at[k] = (at[k] - rest) * factor;
}

static bool takes_short_rows(const berth_op_call *call) {
  return takes_rows(call) && berth__norm_row_length(call) <= SHORT;
}

static berth_status run_short_rows(const berth_op_call *call, berth_error *err) {
  const berth_tensor *scale = berth__optional(call, BERTH__NORM_SCALE), *bias = berth__optional(call, BERTH__NORM_BIAS);
  const bool centred = berth__call_code(call) == BERTH__OP_layer_norm;
  const int64_t length = berth__norm_row_length(call), each = norm_kernel_rows_each(length),
                rows = berth__count(&call->in[BERTH__NORM_X]) / length;
  const int64_t end = call->end * each < rows ? call->end * each : rows;
  vf at[SHORT];
  (void)err;
  for (int64_t row = call->begin * each; row < end; row += VF_LANES) {
    const short_rows some = {.x = (const float *)call->in[BERTH__NORM_X].data + row * length,
                             .y = (float *)call->out[0].data + row * length,
                             .length = length,
                             .count = vf_tail(end - row)};
    norm_kernel_load_short(&some, at);
    norm_kernel_normalize_short(at, length, call->attrs[BERTH__LAYER_NORM_EPSILON].f, centred);
    for (int64_t k = 0; k < length; k++)
      at[k] = vf_fma(at[k], vf_set1(norm_kernel_value_at(scale, k, 1)), vf_set1(norm_kernel_value_at(bias, k, 0)));
    norm_kernel_store_short(&some, at);
  }
  return BERTH_OK;
}

/* ---- group_norm ----------------------------------------------------------------------------------------------- */

static bool takes_groups(const berth_op_call *call) { return call->in[BERTH__NORM_X].type == BERTH_F32; }

static int64_t group_items(const berth_op_call *call) {
  return call->in[BERTH__NORM_X].dim[0] * call->attrs[BERTH__GROUP_NORM_GROUPS].i;
}

static berth_status norm_kernel_run_groups(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__NORM_X];
  const berth_tensor *scale = berth__optional(call, BERTH__NORM_SCALE), *bias = berth__optional(call, BERTH__NORM_BIAS);
  const int64_t groups = call->attrs[BERTH__GROUP_NORM_GROUPS].i, channels = x->dim[1] / groups;
  const int64_t plane = berth__lines_of(x, 1).inner;
  (void)err;
  for (int64_t item = call->begin; item < call->end && channels * plane > 0; item++) {
    const int64_t start = item * channels * plane, channel = item % groups * channels;
    const float *from = (const float *)x->data + start;
    float *to = (float *)call->out[0].data + start;
    const norm_moments m = norm_moments_of(from, channels * plane, call->attrs[BERTH__GROUP_NORM_EPSILON].f, true);
    for (int64_t c = 0; c < channels; c++)
      scale_run(to + c * plane, from + c * plane, plane, &m, norm_kernel_value_at(scale, channel + c, 1),
                norm_kernel_value_at(bias, channel + c, 0));
  }
  return BERTH_OK;
}

#define SHORT_GROUPS 64 /* groups per item */

static bool takes_short_groups(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__NORM_X];
  const int64_t length = x->dim[1] / call->attrs[BERTH__GROUP_NORM_GROUPS].i * berth__lines_of(x, 1).inner;
  return takes_groups(call) && length > 0 && length <= SHORT;
}

static int64_t short_group_items(const berth_op_call *call) {
  return (group_items(call) + SHORT_GROUPS - 1) / SHORT_GROUPS;
}

/* The scales or biases of channel `channel` of consecutive groups. */
static vf norm_kernel_of_groups(const berth_tensor *tensor, int64_t first, int64_t groups, int64_t channels,
                                int64_t channel, float otherwise) {
  float some[VF_LANES];
  for (int64_t lane = 0; lane < VF_LANES; lane++)
    some[lane] = norm_kernel_value_at(tensor, (first + lane) % groups * channels + channel, otherwise);
  return vf_load(some);
}

static berth_status norm_kernel_run_short_groups(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__NORM_X];
  const berth_tensor *scale = berth__optional(call, BERTH__NORM_SCALE), *bias = berth__optional(call, BERTH__NORM_BIAS);
  const int64_t groups = call->attrs[BERTH__GROUP_NORM_GROUPS].i, channels = x->dim[1] / groups;
  const int64_t plane = berth__lines_of(x, 1).inner, length = channels * plane, all = group_items(call);
  const int64_t end = call->end * SHORT_GROUPS < all ? call->end * SHORT_GROUPS : all;
  vf at[SHORT];
  (void)err;
  for (int64_t first = call->begin * SHORT_GROUPS; first < end; first += VF_LANES) {
    const short_rows some = {.x = (const float *)x->data + first * length,
                             .y = (float *)call->out[0].data + first * length,
                             .length = length,
                             .count = vf_tail(end - first)};
    norm_kernel_load_short(&some, at);
    norm_kernel_normalize_short(at, length, call->attrs[BERTH__GROUP_NORM_EPSILON].f, true);
    for (int64_t c = 0; c < channels; c++) {
      const vf by = norm_kernel_of_groups(scale, first, groups, channels, c, 1);
      const vf plus = norm_kernel_of_groups(bias, first, groups, channels, c, 0);
      for (int64_t k = c * plane; k < (c + 1) * plane; k++) at[k] = vf_fma(at[k], by, plus);
    }
    norm_kernel_store_short(&some, at);
  }
  return BERTH_OK;
}

/* ---- batch_norm ----------------------------------------------------------------------------------------------- */

static bool takes_batch(const berth_op_call *call) {
  for (uint32_t i = 0; i < call->n_in; i++)
    if (call->in[i].type != BERTH_F32) return false;
  return true;
}

/* Channels are contiguous, so they fill vectors. */
static bool batch_is_flat(const berth_op_call *call) { return berth__lines_of(&call->in[BERTH__NORM_X], 1).inner == 1; }

static int64_t batch_items(const berth_op_call *call) {
  return call->in[BERTH__NORM_X].dim[0] * (batch_is_flat(call) ? 1 : call->in[BERTH__NORM_X].dim[1]);
}

static void run_flat_batch(const berth_op_call *call) {
  const berth_tensor *in = call->in;
  const int64_t channels = in[BERTH__NORM_X].dim[1];
  const float *scale = in[BERTH__NORM_SCALE].data, *bias = in[BERTH__NORM_BIAS].data, *mean = in[BERTH__NORM_MEAN].data,
              *variance = in[BERTH__NORM_VARIANCE].data;
  const vf epsilon = vf_set1((float)call->attrs[BERTH__BATCH_NORM_EPSILON].f);
  for (int64_t c = 0; c < channels; c += VF_LANES) { /* the factors of these channels serve all rows */
    const int64_t n = vf_tail(channels - c);
    const vf factor = vf_load_n(scale + c, n) / vf_sqrt(vf_load_else(variance + c, n, vf_set1(1.0f)) + epsilon);
    const vf middle = vf_load_n(mean + c, n), shift = vf_load_n(bias + c, n);
    for (int64_t row = call->begin; row < call->end; row++) {
      const int64_t at = row * channels + c;
      const vf x = vf_load_n((const float *)in[BERTH__NORM_X].data + at, n);
      vf_store_n((float *)call->out[0].data + at, vf_fma(x - middle, factor, shift), n);
    }
  }
}

static berth_status run_batch(const berth_op_call *call, berth_error *err) {
  const berth_tensor *in = call->in;
  const int64_t plane = berth__lines_of(&in[BERTH__NORM_X], 1).inner;
  (void)err;
  if (plane == 1) {
    run_flat_batch(call);
    return BERTH_OK;
  }
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t channel = item % in[BERTH__NORM_X].dim[1];
    const double variance = (double)norm_kernel_value_at(&in[BERTH__NORM_VARIANCE], channel, 0);
    const norm_moments m = {norm_kernel_value_at(&in[BERTH__NORM_MEAN], channel, 0), 0,
                            (float)(1.0 / sqrt(variance + call->attrs[BERTH__BATCH_NORM_EPSILON].f))};
    scale_run((float *)call->out[0].data + item * plane, (const float *)in[BERTH__NORM_X].data + item * plane, plane,
              &m, norm_kernel_value_at(&in[BERTH__NORM_SCALE], channel, 1),
              norm_kernel_value_at(&in[BERTH__NORM_BIAS], channel, 0));
  }
  return BERTH_OK;
}

static bool takes_short_batch(const berth_op_call *call) {
  const int64_t plane = berth__lines_of(&call->in[BERTH__NORM_X], 1).inner;
  return takes_batch(call) && plane > 1 && plane <= SHORT;
}

static int64_t short_batch_items(const berth_op_call *call) { return call->in[BERTH__NORM_X].dim[0]; }

static berth_status run_short_batch(const berth_op_call *call, berth_error *err) {
  const berth_tensor *in = call->in;
  const int64_t channels = in[BERTH__NORM_X].dim[1], plane = berth__lines_of(&in[BERTH__NORM_X], 1).inner;
  const float *scale = in[BERTH__NORM_SCALE].data, *bias = in[BERTH__NORM_BIAS].data, *mean = in[BERTH__NORM_MEAN].data,
              *variance = in[BERTH__NORM_VARIANCE].data;
  const vf epsilon = vf_set1((float)call->attrs[BERTH__BATCH_NORM_EPSILON].f);
  vf at[SHORT];
  (void)err;
  for (int64_t c = 0; c < channels; c += VF_LANES) { /* the factors of these channels serve all rows */
    const int64_t n = vf_tail(channels - c);
    const vf factor = vf_load_n(scale + c, n) / vf_sqrt(vf_load_else(variance + c, n, vf_set1(1.0f)) + epsilon);
    const vf middle = vf_load_n(mean + c, n), shift = vf_load_n(bias + c, n);
    for (int64_t row = call->begin; row < call->end; row++) {
      const int64_t start = (row * channels + c) * plane;
      const short_rows some = {.x = (const float *)in[BERTH__NORM_X].data + start,
                               .y = (float *)call->out[0].data + start,
                               .length = plane,
                               .count = n};
      norm_kernel_load_short(&some, at);
      for (int64_t k = 0; k < plane; k++) at[k] = vf_fma(at[k] - middle, factor, shift);
      norm_kernel_store_short(&some, at);
    }
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_norm)[] = {
    {.name = "layer_norm",
     .code = BERTH__OP_layer_norm,
     .takes = takes_short_rows,
     .items = norm_kernel_row_items,
     .run = run_short_rows},
    {.name = "rms_norm",
     .code = BERTH__OP_rms_norm,
     .takes = takes_short_rows,
     .items = norm_kernel_row_items,
     .run = run_short_rows},
    {.name = "group_norm",
     .code = BERTH__OP_group_norm,
     .takes = takes_short_groups,
     .items = short_group_items,
     .run = norm_kernel_run_short_groups},
    {.name = "batch_norm",
     .code = BERTH__OP_batch_norm,
     .takes = takes_short_batch,
     .items = short_batch_items,
     .run = run_short_batch},
    {.name = "layer_norm",
     .code = BERTH__OP_layer_norm,
     .takes = takes_rows,
     .items = norm_kernel_row_items,
     .run = run_rows},
    {.name = "rms_norm",
     .code = BERTH__OP_rms_norm,
     .takes = takes_rows,
     .items = norm_kernel_row_items,
     .run = run_rows},
    {.name = "group_norm",
     .code = BERTH__OP_group_norm,
     .takes = takes_groups,
     .items = group_items,
     .run = norm_kernel_run_groups},
    {.name = "batch_norm", .code = BERTH__OP_batch_norm, .takes = takes_batch, .items = batch_items, .run = run_batch},
    {0},
};
