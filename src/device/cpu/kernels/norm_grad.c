/* The gradients of layer_norm and rms_norm for f32: of x row by row, and of scale and bias as sums over rows, some
 * columns at a time. */
#include "device/cpu/kernels/norm_moments.h"

#define ITEM 8192   /* elements */
#define COLUMNS 128 /* per item, when columns are summed */
#define ROWS 64     /* summed in f32 */
#define TOGETHER 4  /* vectors of columns */

/* ---- By x ------------------------------------------------------------------------------------------------------- */

/* The parts of a row's gradient: dx = factor * (g - mean - n * along), where n is x normalised and g is dy * scale. */
typedef struct slopes {
  float mean, along;
} slopes;

typedef struct grad_row {
  const float *x, *dy, *scale; /* scale NULL: 1 */
  int64_t length;
} grad_row;

static vf norm_grad_normal(const grad_row *r, int64_t i, int64_t count, const norm_moments *m) {
  const vf mean = vf_set1(m->mean), x = count == VF_LANES ? vf_load(r->x + i) : vf_load_else(r->x + i, count, mean);
  return (x - mean - vf_set1(m->rest)) * vf_set1(m->factor);
}

static vf norm_grad_scaled(const grad_row *r, int64_t i, int64_t count) {
  const bool is_whole = count == VF_LANES;
  const vf dy = is_whole ? vf_load(r->dy + i) : vf_load_n(r->dy + i, count);
  if (r->scale == NULL) return dy;
  return dy * (is_whole ? vf_load(r->scale + i) : vf_load_n(r->scale + i, count));
}

static slopes norm_grad_slopes(const grad_row *r, const norm_moments *m, bool is_centred) {
  double sum = 0, product = 0;
  for (int64_t at = 0; at < r->length; at += NORM_BLOCK) {
    const int64_t end = r->length - at < NORM_BLOCK ? r->length : at + NORM_BLOCK;
    vf first[2] = {vf_zero(), vf_zero()}, second[2] = {vf_zero(), vf_zero()};
    int64_t i = at;
    for (; i + 2 * VF_LANES <= end; i += 2 * VF_LANES)
      for (int k = 0; k < 2; k++) {
        const vf g = norm_grad_scaled(r, i + k * VF_LANES, VF_LANES);
        first[k] += g;
        second[k] = vf_fma(g, norm_grad_normal(r, i + k * VF_LANES, VF_LANES, m), second[k]);
      }
    for (; i < end; i += VF_LANES) { /* lanes past the end have a gradient of 0 */
      const int64_t count = vf_tail(end - i);
      const vf g = norm_grad_scaled(r, i, count);
      first[0] += g;
      second[0] = vf_fma(g, norm_grad_normal(r, i, count, m), second[0]);
    }
    sum += (double)vf_sum(first[0] + first[1]);
    product += (double)vf_sum(second[0] + second[1]);
  }
  const double n = (double)r->length;
  return (slopes){is_centred ? (float)(sum / n) : 0, (float)(product / n)};
}

/* The result may overwrite x or dy. */
static void norm_grad_write(const grad_row *r, const norm_moments *m, const slopes *s, float *to) {
  const vf mean = vf_set1(s->mean), along = vf_set1(s->along), factor = vf_set1(m->factor);
  int64_t i = 0;
  for (; i + VF_LANES <= r->length; i += VF_LANES) {
    const vf n = norm_grad_normal(r, i, VF_LANES, m), g = norm_grad_scaled(r, i, VF_LANES);
    vf_store(to + i, vf_fnma(n, along, g - mean) * factor);
  }
  if (i == r->length) return;
  const int64_t count = r->length - i;
  const vf n = norm_grad_normal(r, i, count, m), g = norm_grad_scaled(r, i, count);
  vf_store_n(to + i, vf_fnma(n, along, g - mean) * factor, count);
}

static bool norm_grad_takes(const berth_op_call *call) {
  const int64_t length = berth__norm_row_length(call);
  return call->in[BERTH__NORM_X].type == BERTH_F32 && length > 0 && norm_is_row(call, BERTH__NORM_SCALE, length);
}

static int64_t norm_grad_rows_each(int64_t length) { return length < ITEM ? ITEM / length : 1; }

static int64_t norm_grad_items(const berth_op_call *call) {
  const int64_t each = norm_grad_rows_each(berth__norm_row_length(call));
  return (berth__norm_rows(call) + each - 1) / each;
}

static berth_status norm_grad_run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *scale = berth__optional(call, BERTH__NORM_SCALE);
  const bool is_centred = berth__call_code(call) == BERTH__OP_layer_norm_grad;
  const int64_t length = berth__norm_row_length(call), each = norm_grad_rows_each(length),
                rows = berth__norm_rows(call);
  const int64_t end = call->end * each < rows ? call->end * each : rows;
  (void)err;
  for (int64_t row = call->begin * each; row < end; row++) {
    const grad_row r = {.x = (const float *)call->in[BERTH__NORM_X].data + row * length,
                        .dy = (const float *)call->in[BERTH__NORM_GRAD_DY].data + row * length,
                        .scale = scale != NULL ? scale->data : NULL,
                        .length = length};
    const norm_moments m = norm_moments_of(r.x, length, call->attrs[BERTH__LAYER_NORM_EPSILON].f, is_centred);
    const slopes s = norm_grad_slopes(&r, &m, is_centred);
    norm_grad_write(&r, &m, &s, (float *)call->out[0].data + row * length);
  }
  return BERTH_OK;
}

/* ---- By scale and bias ------------------------------------------------------------------------------------------ */

static bool norm_scale_grad_takes(const berth_op_call *call) {
  return call->in[BERTH__NORM_X].type == BERTH_F32 && berth__norm_row_length(call) > 0;
}

static int64_t norm_scale_grad_items(const berth_op_call *call) {
  return (berth__norm_row_length(call) + COLUMNS - 1) / COLUMNS;
}

/* The moments of all rows: every item needs them, and each worker computes them once. If there is only one item, they
 * are computed along with the sums. */
static uint64_t norm_scale_grad_scratch(const berth_op_call *call) {
  return norm_scale_grad_items(call) > 1 ? (uint64_t)berth__norm_rows(call) * sizeof(norm_moments) : 0;
}

static uint64_t norm_scale_grad_scratch_most(const berth_op_call *call) {
  return (uint64_t)berth__norm_rows(call) * sizeof(norm_moments);
}

static void norm_scale_grad_find(const berth_op_call *call, int64_t row, int64_t count, norm_moments *to) {
  const bool is_centred = berth__call_code(call) == BERTH__OP_layer_norm_scale_grad;
  const int64_t length = berth__norm_row_length(call);
  for (int64_t i = 0; i < count; i++)
    to[i] = norm_moments_of((const float *)call->in[BERTH__NORM_X].data + (row + i) * length, length,
                            call->attrs[BERTH__LAYER_NORM_EPSILON].f, is_centred);
}

static void norm_scale_grad_prepare(const berth_op_call *call) {
  if (norm_scale_grad_items(call) > 1) norm_scale_grad_find(call, 0, berth__norm_rows(call), call->scratch);
}

/* Sums over at most ROWS rows, for columns from `column` on: of dy * n, then of dy. */
static void norm_scale_grad_add(const grad_row *first, int64_t rows, int64_t column, const norm_moments *m,
                                double *scale, double *bias) {
  vf product[TOGETHER], sum[TOGETHER];
  for (int k = 0; k < TOGETHER; k++) product[k] = sum[k] = vf_zero();
  const int64_t left = first->length - column;
  const bool is_whole = left >= TOGETHER * VF_LANES;
  for (int64_t row = 0; row < rows; row++) {
    const grad_row r = {.x = first->x + row * first->length, .dy = first->dy + row * first->length};
    for (int64_t k = 0; k < TOGETHER; k++) {
      const int64_t at = k * VF_LANES, count = is_whole ? VF_LANES : left - at < 0 ? 0 : vf_tail(left - at);
      const vf dy = is_whole ? vf_load(r.dy + column + at) : vf_load_n(r.dy + column + at, count);
      sum[k] += dy;
      product[k] = vf_fma(dy, norm_grad_normal(&r, column + at, count, &m[row]), product[k]);
    }
  }
  float lanes[2][VF_LANES];
  for (int64_t k = 0; k < TOGETHER; k++) {
    vf_store(lanes[0], product[k]);
    vf_store(lanes[1], sum[k]);
    for (int64_t i = 0; i < VF_LANES; i++) {
      scale[k * VF_LANES + i] += (double)lanes[0][i];
      bias[k * VF_LANES + i] += (double)lanes[1][i];
    }
  }
}

/* The sums over some rows for all columns of an item. */
static void norm_scale_grad_add_item(const berth_op_call *call, int64_t item, int64_t row, int64_t rows,
                                     const norm_moments *m, double *scale, double *bias) {
  const int64_t length = berth__norm_row_length(call), begin = item * COLUMNS;
  const int64_t end = length - begin < COLUMNS ? length : begin + COLUMNS;
  const grad_row first = {.x = (const float *)call->in[BERTH__NORM_X].data + row * length,
                          .dy = (const float *)call->in[BERTH__NORM_SCALE_GRAD_DY].data + row * length,
                          .length = length};
  for (int64_t column = begin; column < end; column += TOGETHER * VF_LANES)
    norm_scale_grad_add(&first, rows, column, m, scale + (column - begin), bias + (column - begin));
}

static berth_status norm_scale_grad_run(const berth_op_call *call, berth_error *err) {
  const int64_t length = berth__norm_row_length(call), rows = berth__norm_rows(call);
  const bool has_all = norm_scale_grad_items(call) > 1;
  (void)err;
  for (int64_t item = call->begin; item < call->end; item++) {
    double sums[2][COLUMNS + TOGETHER * VF_LANES] = {{0}};
    norm_moments some[ROWS];
    for (int64_t row = 0; row < rows; row += ROWS) {
      const int64_t count = rows - row < ROWS ? rows - row : ROWS;
      if (!has_all) norm_scale_grad_find(call, row, count, some);
      const norm_moments *m = has_all ? (const norm_moments *)call->scratch + row : some;
      norm_scale_grad_add_item(call, item, row, count, m, sums[0], sums[1]);
    }
    for (int64_t i = item * COLUMNS; i < length && i < (item + 1) * COLUMNS; i++)
      for (uint32_t r = 0; r < call->n_out; r++) ((float *)call->out[r].data)[i] = (float)sums[r][i - item * COLUMNS];
  }
  return BERTH_OK;
}

#define BY_X(op) \
  { .name = #op, .code = BERTH__OP_##op, .takes = norm_grad_takes, .items = norm_grad_items, .run = norm_grad_run }
#define BY_SCALE(op)                                                                                     \
  {                                                                                                      \
    .name = #op, .code = BERTH__OP_##op, .takes = norm_scale_grad_takes, .items = norm_scale_grad_items, \
    .scratch = norm_scale_grad_scratch, .run = norm_scale_grad_run, .prepare = norm_scale_grad_prepare,  \
    .scratch_most = norm_scale_grad_scratch_most                                                         \
  }

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_norm_grad)[] = {
    BY_X(layer_norm_grad), BY_X(rms_norm_grad), BY_SCALE(layer_norm_scale_grad), BY_SCALE(rms_norm_scale_grad), {0},
};
