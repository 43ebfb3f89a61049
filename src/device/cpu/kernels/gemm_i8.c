#include "device/cpu/kernels/gemm_i8.h"

#include "ops/operand.h"

#if VF_LANES == 16
#define ROWS 8
#else
#define ROWS 4
#endif
#define UNROLL _Pragma("GCC unroll 16")

/* A tail that is bounds alone. */
static bool is_clamp(const berth_op_call *call, const berth__bytes_attrs *attrs, float *low, float *high) {
  return call->n_in <= berth__bytes_tail_first(attrs) && tail_clamp(attrs->code, attrs->numbers, low, high);
}

bool i8_takes(const berth_op_call *call) {
  const berth__bytes_attrs attrs = berth__bytes_attrs_of(call->user, call->attrs);
  float low, high;
  return call->out[0].type == BERTH_F32 || is_clamp(call, &attrs, &low, &high);
}

bool i8_tail(const berth_op_call *call, const berth__bytes_attrs *attrs, chain_run *tail) {
  const uint32_t first = berth__bytes_tail_first(attrs);
  float low, high;
  if (is_clamp(call, attrs, &low, &high)) return false;
  return tail_prepare(tail, call->in + first, call->n_in > first ? call->n_in - first : 0, &call->out[0], attrs->code,
                      attrs->numbers);
}

void i8_bounds(const berth_op_call *call, const berth__bytes_attrs *attrs, float *low, float *high) {
  const berth_type to = call->out[0].type;
  if (!is_clamp(call, attrs, low, high)) {
    *low = -INFINITY;
    *high = INFINITY;
  }
  if (to == BERTH_F32) return;
  const float scale = (float)attrs->own[BERTH__BYTES_OUT_SCALE].f;
  const float zero = (float)attrs->own[BERTH__BYTES_OUT_ZERO].i;
  const float least = (to == BERTH_U8 ? 0.0f : -128.0f) - zero, most = (to == BERTH_U8 ? 255.0f : 127.0f) - zero;
  *low = *low / scale > least ? *low / scale : least;
  *high = *high / scale < most ? *high / scale : most;
  if (*high < least) *high = least;
  if (*low > most) *low = most;
}

void i8_prepare(i8_job *job, const berth_op_call *call, int64_t depth, int64_t columns, int64_t group) {
  job->call = call;
  job->attrs = berth__bytes_attrs_of(call->user, call->attrs);
  job->depth = depth;
  job->groups = berth__bytes_groups(depth);
  job->columns = columns;
  job->column_each = columns / group;
  job->flip = call->in[BERTH__BYTES_X].type == BERTH_I8 ? 128 : 0;
  job->x_zero = job->flip;
  if (berth__call_has(call, BERTH__BYTES_X_ZERO))
    job->x_zero += (int32_t)berth__load_i64(&call->in[BERTH__BYTES_X_ZERO], 0);
  job->weight_shift = strcmp(job->attrs.own[BERTH__BYTES_WEIGHTS].s, "u8") == 0 ? BERTH__BYTES_SHIFT : 0;
  job->needs_row_sums = job->weight_shift != 0 || berth__call_has(call, BERTH__BYTES_WEIGHT_ZERO);
  job->sum = i8_sum(call, &job->attrs);
  job->has_tail = i8_tail(call, &job->attrs, &job->tail);
}

static float float_at(const berth_tensor *tensor, int64_t column) {
  return ((const float *)tensor->data)[berth__bytes_entry(tensor, column)];
}

/* The zero point of the stored weights of a column. */
static int32_t stored_zero(const i8_job *job, int64_t column) {
  const berth_tensor *zero = &job->call->in[BERTH__BYTES_WEIGHT_ZERO];
  if (!berth__call_has(job->call, BERTH__BYTES_WEIGHT_ZERO)) return -job->weight_shift;
  return (int32_t)berth__load_i64(zero, berth__bytes_entry(zero, column)) - job->weight_shift;
}

static int32_t stored_sum(const i8_job *job, const i8_block *block, int64_t i) {
  const int64_t panel_bytes = (job->groups + 1) * VF_PANEL * 4;
  const int8_t *sums = block->weight + i / VF_PANEL * panel_bytes + job->groups * VF_PANEL * 4;
  int32_t sum;
  memcpy(&sum, sums + i % VF_PANEL * 4, sizeof sum);
  return sum;
}

void i8_block_of(const i8_job *job, int64_t index, i8_block *block) {
  const berth_op_call *call = job->call;
  const int64_t each = i8_blocks_each(job->column_each), group = index / each, at = index % each * I8_COLUMNS;
  const int64_t panels = (job->column_each + VF_PANEL - 1) / VF_PANEL;
  const bool is_f32 = call->out[0].type == BERTH_F32;
  const float unit = is_f32 ? 1 : (float)job->attrs.own[BERTH__BYTES_OUT_SCALE].f;
  float low, high;
  i8_bounds(call, &job->attrs, &low, &high);
  block->low = vf_set1(low);
  block->high = vf_set1(high);
  block->out_zero = vi_set1((int32_t)job->attrs.own[BERTH__BYTES_OUT_ZERO].i);
  block->first = group * job->column_each + at;
  block->n = job->column_each - at < I8_COLUMNS ? job->column_each - at : I8_COLUMNS;
  block->weight = (const int8_t *)call->in[BERTH__BYTES_WEIGHT].data +
                  (group * panels + at / VF_PANEL) * (job->groups + 1) * VF_PANEL * 4;
  memset(block->scale, 0, sizeof block->scale);
  memset(block->bias, 0, sizeof block->bias);
  memset(block->start, 0, sizeof block->start);
  memset(block->weight_zero, 0, sizeof block->weight_zero);
  for (int64_t i = 0; i < block->n; i++) {
    const int64_t column = block->first + i;
    const int32_t zero = stored_zero(job, column);
    block->scale[i] = float_at(&call->in[BERTH__BYTES_SCALE], column) / unit;
    if (berth__call_has(call, BERTH__BYTES_BIAS))
      block->bias[i] = ((const float *)call->in[BERTH__BYTES_BIAS].data)[column] / unit;
    block->weight_zero[i] = zero;
    block->start[i] = -job->x_zero * (stored_sum(job, block, i) - (int32_t)job->depth * zero);
  }
}

void i8_sum_rows(const uint8_t *x, int64_t stride, int64_t length, int64_t n, int32_t *out) {
  for (int64_t row = 0; row < n; row++) {
    int32_t sum = 0;
    for (int64_t i = 0; i < length; i++) sum += x[row * stride + i];
    out[row] = sum;
  }
}

/* Where a tile's results go, and what makes them of its sums. */
typedef struct finish {
  const i8_job *job;
  const i8_block *block;
  int64_t at;             /* columns from the start of the block */
  const int32_t *row_sum; /* of the tile's rows */
  int64_t row;
} finish;

/* One vector of columns of a tile. Everything is read before the first byte is stored: bytes may lie anywhere. */
static inline __attribute__((always_inline)) void store_vectors(const finish *f, vi sum[ROWS][2], const int rows,
                                                                const int v) {
  const i8_block *b = f->block;
  const int64_t column = f->at + v * VF_LANES, n = vf_tail(b->n - column), stride = f->job->columns;
  const berth_tensor *out = &f->job->call->out[0];
  const int64_t index = f->row * stride + b->first + column;
  const vf scale = vf_load(b->scale + column), bias = vf_load(b->bias + column), low = b->low, high = b->high;
  const vi zero = b->out_zero;
  vf x[ROWS];
  UNROLL for (int r = 0; r < rows; r++) {
    vi whole = sum[r][v];
    if (f->job->needs_row_sums) whole = vi_sub(whole, vi_mul(vi_load(b->weight_zero + column), vi_set1(f->row_sum[r])));
    x[r] = vf_fma(vf_from_int(whole), scale, bias);
    if (f->job->sum != NULL) x[r] = x[r] + vf_load_n(f->job->sum + index + r * stride, n);
    x[r] = vf_min(high, vf_max(low, x[r]));
  }
  if (out->type == BERTH_F32) {
    float *to = (float *)out->data + index;
    UNROLL for (int r = 0; r < rows; r++) vf_store_n(to + r * stride, x[r], n);
  } else {
    uint8_t *to = (uint8_t *)out->data + index;
    UNROLL for (int r = 0; r < rows; r++) vi_store_bytes_n(to + r * stride, vi_add(vf_to_int(x[r]), zero), n);
  }
}

static inline __attribute__((always_inline)) void multiply_tile(const finish *f, const uint8_t *x, int64_t stride,
                                                                const int8_t *w, const int rows) {
  vi sum[ROWS][2];
  UNROLL for (int r = 0; r < rows; r++) {
    sum[r][0] = vi_load(f->block->start + f->at);
    sum[r][1] = vi_load(f->block->start + f->at + VF_LANES);
  }
  for (int64_t g = 0; g < f->job->groups; g++, w += VF_PANEL * 4) {
    const vi w0 = vi_load(w), w1 = vi_load(w + VF_LANES * 4);
    UNROLL for (int r = 0; r < rows; r++) {
      int32_t four;
      memcpy(&four, x + r * stride + g * 4, sizeof four);
      const vi all = vi_set1(four);
      sum[r][0] = vi_dot(sum[r][0], all, w0);
      sum[r][1] = vi_dot(sum[r][1], all, w1);
    }
  }
  store_vectors(f, sum, rows, 0);
  if (f->at + VF_LANES < f->block->n) store_vectors(f, sum, rows, 1);
}

void i8_multiply(const i8_job *job, const i8_block *block, const uint8_t *x, int64_t stride, const int32_t *row_sum,
                 int64_t row, int64_t n) {
  const int8_t *w = block->weight;
  for (int64_t at = 0; at < block->n; at += VF_PANEL, w += (job->groups + 1) * VF_PANEL * 4) {
    finish f = {job, block, at, row_sum, row};
    int64_t r = 0;
    for (; r + ROWS <= n; r += ROWS, f.row += ROWS, f.row_sum += ROWS)
      multiply_tile(&f, x + r * stride, stride, w, ROWS);
    for (; r + 4 <= n; r += 4, f.row += 4, f.row_sum += 4) multiply_tile(&f, x + r * stride, stride, w, 4);
    for (; r < n; r++, f.row++, f.row_sum++) multiply_tile(&f, x + r * stride, stride, w, 1);
  }
  if (job->has_tail) tail_rows(&job->tail, row, n, block->first, block->n);
}
