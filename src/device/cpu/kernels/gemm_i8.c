#include "device/cpu/kernels/gemm_i8.h"
#include "device/cpu/kernels/inlined.h"

#include "ops/operand.h"

#if VF_LANES == 16
#define ROWS 8
#else
#define ROWS 4
#endif

/* An epilogue that only clamps. */
static bool is_clamp(const berth_op_call *call, const berth__bytes_attrs *attrs, float *low, float *high) {
  return call->n_in <= berth__bytes_epilogue_first(attrs) && epilogue_clamp(attrs->code, attrs->numbers, low, high);
}

/* Elements of x are at most 255 from their zero point; so are those of the weight, but those of i8 without a zero point
 * at most 128. What is summed on the way may wrap: no sum of all does. */
static int64_t most_rows(const berth_op_call *call, const berth__bytes_attrs *attrs) {
  const bool is_centred =
      strcmp(attrs->own[BERTH__BYTES_WEIGHTS].s, "i8") == 0 && !berth__call_has(call, BERTH__BYTES_WEIGHT_ZERO);
  return is_centred ? 65536 : 32768;
}

bool i8_takes(const berth_op_call *call, int64_t depth) {
  const berth__bytes_attrs attrs = berth__bytes_attrs_of(call->user, call->attrs);
  float low, high;
  if (depth < 1 || depth > most_rows(call, &attrs)) return false;
  return call->out[0].type == BERTH_F32 || is_clamp(call, &attrs, &low, &high);
}

bool i8_epilogue(const berth_op_call *call, const berth__bytes_attrs *attrs, chain_run *epilogue) {
  const uint32_t first = berth__bytes_epilogue_first(attrs);
  float low, high;
  if (is_clamp(call, attrs, &low, &high)) return false;
  return epilogue_prepare(epilogue, call->in + first, call->n_in > first ? call->n_in - first : 0, &call->out[0],
                          attrs->code, attrs->numbers);
}

/* Intersects bounds with others. */
static void gemm_i8_kernel_narrow(float *low, float *high, float least, float most) {
  *low = *low > least ? *low : least;
  *high = *high < most ? *high : most;
  if (*high < least) *high = least;
  if (*low > most) *low = most;
}

/* Whether the numbers for n columns, or the one for all columns, are finite. */
static bool are_finite(const berth_tensor *tensor, int64_t first, int64_t n) {
  const int64_t stride = berth__bytes_entry(tensor, 1);
  const float *from = (const float *)tensor->data + first * stride;
  int odd = 0;
  for (int64_t i = 0; i < (stride == 0 ? 1 : n); i++) odd |= !(fabsf(from[i * stride]) < INFINITY);
  return odd == 0;
}

void i8_end_of(const berth_op_call *call, const berth__bytes_attrs *attrs, int64_t first, int64_t n, i8_end *end) {
  const berth_type to = call->out[0].type;
  const float zero = (float)attrs->own[BERTH__BYTES_OUT_ZERO].i, unit = (float)attrs->own[BERTH__BYTES_OUT_SCALE].f;
  const float least = (to == BERTH_U8 ? 0.0f : -128.0f) - zero, most = (to == BERTH_U8 ? 255.0f : 127.0f) - zero;
  float low, high;
  if (!is_clamp(call, attrs, &low, &high)) {
    low = -INFINITY;
    high = INFINITY;
  }
  end->divides = unit != 1.0f;
  end->is_odd = !vf_divides_fast(unit);
  const bool is_byte = to == BERTH_U8 || to == BERTH_I8;
  end->may_fail = is_byte && !are_finite(&call->in[BERTH__BYTES_SCALE], first, n);
  if (is_byte && berth__call_has(call, BERTH__BYTES_BIAS) && !berth__bytes_counts_bias(call))
    end->may_fail = end->may_fail || !are_finite(&call->in[BERTH__BYTES_BIAS], first, n);
  end->holds_type = is_byte && low <= least * unit && high >= most * unit;
  if (to != BERTH_F32 && !end->is_odd) gemm_i8_kernel_narrow(&low, &high, least * unit, most * unit);
  end->low = vf_set1(low);
  end->high = vf_set1(high);
  end->unit = vf_set1(unit);
  end->reciprocal = vf_set1(1.0f / unit);
  end->least = vf_set1(least);
  end->most = vf_set1(most);
  end->down = vf_set1(-zero);
  end->zero = vi_set1((int32_t)attrs->own[BERTH__BYTES_OUT_ZERO].i);
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
  job->has_bias = berth__call_has(call, BERTH__BYTES_BIAS) && !berth__bytes_counts_bias(call);
  job->sum = i8_sum(call, &job->attrs);
  job->has_epilogue = i8_epilogue(call, &job->attrs, &job->epilogue);
}

/* n integers of a bias from `column` on, padded with zeros. */
static vi counts_at(const berth_tensor *tensor, int64_t column, int64_t n) {
  int32_t some[VF_LANES] = {0};
  for (int64_t i = 0; i < n; i++) some[i] = (int32_t)berth__load_i64(tensor, (column + i) * tensor->stride[0]);
  return vi_load(some);
}

/* n elements from `column` on, padded with zeros. */
static vf floats_at(const berth_tensor *tensor, int64_t column, int64_t n) {
  const int64_t stride = berth__bytes_entry(tensor, 1);
  const float *from = (const float *)tensor->data + column * stride;
  float some[VF_LANES] = {0};
  if (stride == 1) return vf_load_n(from, n);
  for (int64_t i = 0; i < n; i++) some[i] = from[i * stride];
  return vf_load(some);
}

/* The zero point of the stored weights of a column. */
static int32_t stored_zero(const i8_job *job, int64_t column) {
  const berth_tensor *zero = &job->call->in[BERTH__BYTES_WEIGHT_ZERO];
  if (!berth__call_has(job->call, BERTH__BYTES_WEIGHT_ZERO)) return -job->weight_shift;
  return (int32_t)berth__load_i64(zero, berth__bytes_entry(zero, column)) - job->weight_shift;
}

/* The sums of the stored weights of a vector of columns, stored in the last group of a panel. */
static vi stored_sums(const i8_job *job, const i8_block *block, int64_t i) {
  const int64_t panel_bytes = (job->groups + 1) * VF_PANEL * 4;
  return vi_load(block->weight + i / VF_PANEL * panel_bytes + job->groups * VF_PANEL * 4 + i % VF_PANEL * 4);
}

/* A vector of columns from the block's column i on, n of which exist. */
static void prepare_columns(const i8_job *job, i8_block *block, int64_t i, int64_t n) {
  const berth_op_call *call = job->call;
  const berth_tensor *bias = &call->in[BERTH__BYTES_BIAS];
  const int64_t column = block->first + i;
  vi sums = stored_sums(job, block, i), counts = vi_set1(0);
  if (call->out[0].type != BERTH_I32) vf_store(block->scale + i, floats_at(&call->in[BERTH__BYTES_SCALE], column, n));
  if (berth__bytes_counts_bias(call))
    counts = counts_at(bias, column, n);
  else if (job->has_bias)
    vf_store(block->bias + i, floats_at(bias, column, n));
  if (job->needs_row_sums) {
    int32_t *zero = block->weight_zero + i;
    for (int64_t lane = 0; lane < VF_LANES; lane++) zero[lane] = lane < n ? stored_zero(job, column + lane) : 0;
    sums = vi_sub(sums, vi_mul(vi_load(zero), vi_set1((int32_t)job->depth)));
  }
  vi_store(block->start + i, vi_add(counts, vi_mul(sums, vi_set1(-job->x_zero))));
}

#define NEAR_ROWS 16 /* for fewer rows, examining the weights does not pay */
#define FEW_FAR 3    /* one group in so many may have weights that are not near 0 */

/* How much is above and below 0 in a group of a panel. */
typedef struct spread {
  vi above[2], below[2];
} spread;

static spread spread_of(const int8_t *w) {
  spread s;
  for (int v = 0; v < 2; v++) {
    const vi group = vi_load(w + v * VF_LANES * 4);
    s.above[v] = vi_above(group);
    s.below[v] = vi_below(group);
  }
  return s;
}

static bool is_near(const spread *s) {
  return vi_are_near(s->above[0], s->below[0]) && vi_are_near(s->above[1], s->below[1]);
}

static bool are_near_together(const spread *a, const spread *b) {
  for (int v = 0; v < 2; v++)
    if (!vi_are_near(vi_add_16(a->above[v], b->above[v]), vi_add_16(a->below[v], b->below[v]))) return false;
  return true;
}

/* Lists the groups of a panel. Single groups near 0 and groups that are not near 0 are collected at the end of the
 * list, backwards, and marked by a bit. */
static void order_groups(const int8_t *w, int64_t groups, i8_order *order) {
  enum {
    FAR = 0x8000
  };
  int64_t n = 0, back = groups;
  spread here = spread_of(w), next = here;
  order->n_near = order->n_far = 0;
  for (int64_t g = 0; g < groups; g++, here = next) {
    if (g + 1 < groups) next = spread_of(w + (g + 1) * VF_PANEL * 4);
    if (g + 1 < groups && are_near_together(&here, &next)) {
      order->group[n++] = (uint16_t)g++;
      if (g + 1 < groups) next = spread_of(w + (g + 1) * VF_PANEL * 4);
      continue;
    }
    const bool is_far = !is_near(&here);
    order->group[--back] = (uint16_t)(is_far ? g | FAR : g);
    order->n_near += !is_far;
    order->n_far += is_far;
  }
  order->n_pairs = n;
  const int64_t waiting = groups - back;
  memmove(order->group + n, order->group + back, (size_t)waiting * sizeof *order->group);
  for (int64_t i = n, first = n; i < n + waiting; i++) { /* groups near 0 come first */
    const uint16_t g = order->group[i];
    if (g & FAR) continue;
    order->group[i] = order->group[first];
    order->group[first++] = g;
  }
  for (int64_t i = n + order->n_near; i < n + waiting; i++) order->group[i] &= (uint16_t)~FAR;
}

static void order_block(const i8_job *job, i8_block *block) {
  const int64_t panels = (block->n + VF_PANEL - 1) / VF_PANEL;
  int64_t n_far = 0;
  for (int64_t panel = 0; panel < panels; panel++) {
    order_groups(block->weight + panel * (job->groups + 1) * VF_PANEL * 4, job->groups, &block->order[panel]);
    n_far += block->order[panel].n_far;
  }
  block->is_near = n_far * FEW_FAR <= panels * job->groups;
}

/* Whether sums times scales stay so small that they fit integers before they are clamped. */
static bool stays_small(const i8_job *job, const i8_block *block) {
  float most = 0;
  for (int64_t i = 0; i < block->n; i++) {
    const float start = (float)block->start[i];
    const float bound = fabsf(block->scale[i]) * (fabsf(start) + 255.0f * 128.0f * (float)job->depth);
    most = bound > most ? bound : most;
  }
  return most < 0x1p30f;
}

void i8_block_of(const i8_job *job, int64_t index, int64_t rows, i8_block *block) {
  const berth_op_call *call = job->call;
  const int64_t each = i8_blocks_each(job->column_each), group = index / each;
  const int64_t panels = (job->column_each + VF_PANEL - 1) / VF_PANEL;
  const int64_t at = index % each * panels / each * VF_PANEL, end = (index % each + 1) * panels / each * VF_PANEL;
  block->first = group * job->column_each + at;
  block->n = (job->column_each < end ? job->column_each : end) - at;
  i8_end_of(call, &job->attrs, block->first, block->n, &block->end);
  block->weight = (const int8_t *)call->in[BERTH__BYTES_WEIGHT].data +
                  (group * panels + at / VF_PANEL) * (job->groups + 1) * VF_PANEL * 4;
  for (int64_t i = 0; i < end - at; i += VF_LANES)
    prepare_columns(job, block, i, block->n > i ? vf_tail(block->n - i) : 0);
  block->is_plain = !job->needs_row_sums && !job->has_bias && job->sum == NULL && !block->end.divides &&
                    !block->end.is_odd && !block->end.may_fail;
  block->is_near = false;
  if (VI_HAS_NEAR && rows >= NEAR_ROWS && job->depth <= I8_NEAR_ROWS) order_block(job, block);
  block->is_bare = VI_SATURATES && block->is_plain && block->end.holds_type && stays_small(job, block);
}

void i8_sum_rows(const uint8_t *x, int64_t stride, int64_t length, int64_t n, int32_t *out) {
  const vi ones = vi_set1(0x01010101);
  for (int64_t row = 0; row < n; row++, x += stride) {
    int32_t lanes[VF_LANES], sum = 0;
    vi sums = vi_set1(0);
    int64_t i = 0;
    for (; i + 4 * VF_LANES <= length; i += 4 * VF_LANES) sums = vi_dot(sums, vi_load(x + i), ones);
    vi_store(lanes, sums);
    for (int lane = 0; lane < VF_LANES; lane++) sum += lanes[lane];
    for (; i < length; i++) sum += x[i];
    out[row] = sum;
  }
}

/* Where a tile's results go, and how they are made from its sums. */
typedef struct finish {
  const i8_job *job;
  const i8_block *block;
  int64_t at;             /* columns from the start of the block */
  const int32_t *row_sum; /* of the tile's rows */
  int64_t row;
} finish;

/* Stores the sums themselves, which are the result. */
static inline __attribute__((always_inline)) void store_sums(const finish *f, vi sum, int row, int64_t column,
                                                             int64_t n) {
  const i8_block *b = f->block;
  int32_t *to = (int32_t *)f->job->call->out[0].data + (f->row + row) * f->job->columns + b->first + column;
  if (f->job->needs_row_sums) sum = vi_sub(sum, vi_mul(vi_load(b->weight_zero + column), vi_set1(f->row_sum[row])));
  if (n == VF_LANES) {
    vi_store(to, sum);
    return;
  }
  int32_t some[VF_LANES];
  vi_store(some, sum);
  memcpy(to, some, (size_t)n * sizeof *to);
}

/* A vector of columns of a row of a tile, clamped; n of its columns exist. */
static inline __attribute__((always_inline)) vf held_value(const finish *f, const i8_end *end, vi sum, int row,
                                                           int64_t column, int64_t n) {
  const i8_block *b = f->block;
  const int64_t stride = f->job->columns;
  if (f->job->needs_row_sums) sum = vi_sub(sum, vi_mul(vi_load(b->weight_zero + column), vi_set1(f->row_sum[row])));
  vf x = vf_from_int(sum) * vf_load(b->scale + column);
  if (f->job->has_bias) x = x + vf_load(b->bias + column);
  if (f->job->sum != NULL) x = x + vf_load_n(f->job->sum + (f->row + row) * stride + b->first + column, n);
  return i8_hold(end, x);
}

/* One vector of columns of a tile. Everything is read before the first byte is stored, since bytes may alias
 * anything. */
static inline __attribute__((always_inline)) void store_vectors(const finish *f, vi sum[ROWS][2], const int rows,
                                                                const int v) {
  const i8_block *b = f->block;
  const int64_t column = f->at + v * VF_LANES, n = vf_tail(b->n - column), stride = f->job->columns;
  const berth_tensor *out = &f->job->call->out[0];
  const int64_t index = f->row * stride + b->first + column;
  const i8_end end = b->end;
  vf x[ROWS];
  if (out->type == BERTH_I32) {
    UNROLL for (int r = 0; r < rows; r++) store_sums(f, sum[r][v], r, column, n);
    return;
  }
  UNROLL for (int r = 0; r < rows; r++) x[r] = held_value(f, &end, sum[r][v], r, column, n);
  if (out->type == BERTH_F32) {
    float *to = (float *)out->data + index;
    UNROLL for (int r = 0; r < rows; r++) vf_store_n(to + r * stride, x[r], n);
  } else {
    uint8_t *to = (uint8_t *)out->data + index;
    UNROLL for (int r = 0; r < rows; r++) vi_store_bytes_n(to + r * stride, i8_byte(&end, x[r]), n);
  }
}

/* A byte of a plain block. */
static inline __attribute__((always_inline)) vi plain_byte(const i8_block *b, vi sum, int64_t column) {
  return vi_add(vf_to_int(i8_hold(&b->end, vf_from_int(sum) * vf_load(b->scale + column))), b->end.zero);
}

/* A byte of a bare block, which is clamped by the store. */
static inline __attribute__((always_inline)) vi bare_byte(const i8_block *b, vi sum, int64_t column) {
  return vi_add(vf_to_int(vf_from_int(sum) * vf_load(b->scale + column)), b->end.zero);
}

/* Both vectors of a tile whose columns all exist. */
static inline __attribute__((always_inline)) void store_bytes(const finish *f, vi sum[ROWS][2], const int rows) {
  const i8_block *b = f->block;
  const berth_tensor *out = &f->job->call->out[0];
  const int64_t stride = f->job->columns;
  const bool is_signed = out->type == BERTH_I8;
  uint8_t *to = (uint8_t *)out->data + f->row * stride + b->first + f->at;
  vi whole[ROWS][2];
  if (VI_SATURATES && rows % 2 == 0 && b->is_bare) {
    UNROLL for (int i = 0; i < 2 * rows; i++) whole[i / 2][i % 2] =
        bare_byte(b, sum[i / 2][i % 2], f->at + i % 2 * VF_LANES);
  } else if (b->is_plain) {
    UNROLL for (int i = 0; i < 2 * rows; i++) whole[i / 2][i % 2] =
        plain_byte(b, sum[i / 2][i % 2], f->at + i % 2 * VF_LANES);
  } else {
    const i8_end end = b->end;
    UNROLL for (int i = 0; i < 2 * rows; i++) whole[i / 2][i % 2] =
        i8_byte(&end, held_value(f, &end, sum[i / 2][i % 2], i / 2, f->at + i % 2 * VF_LANES, VF_LANES));
  }
  UNROLL for (int r = 0; r + 1 < rows; r += 2)
      vi_store_bytes_of_two(to + r * stride, to + (r + 1) * stride, whole[r], whole[r + 1], is_signed);
  if (rows % 2 != 0)
    for (int v = 0; v < 2; v++) vi_store_bytes_n(to + (rows - 1) * stride + v * VF_LANES, whole[rows - 1][v], VF_LANES);
}

/* ---- Sums ---- */

static inline __attribute__((always_inline)) void gemm_i8_kernel_finish(const finish *f, vi sum[ROWS][2],
                                                                        const int rows) {
  const berth_type to = f->job->call->out[0].type;
  if ((to == BERTH_U8 || to == BERTH_I8) && f->at + VF_PANEL <= f->block->n) {
    store_bytes(f, sum, rows);
    return;
  }
  store_vectors(f, sum, rows, 0);
  if (f->at + VF_LANES < f->block->n) store_vectors(f, sum, rows, 1);
}

static inline __attribute__((always_inline)) void gemm_i8_kernel_start(const finish *f, vi sum[ROWS][2],
                                                                       const int rows) {
  UNROLL for (int r = 0; r < rows; r++) {
    sum[r][0] = vi_load(f->block->start + f->at);
    sum[r][1] = vi_load(f->block->start + f->at + VF_LANES);
  }
}

static inline __attribute__((always_inline)) void gemm_i8_kernel_multiply_tile(const finish *f, const uint8_t *x,
                                                                               int64_t stride, const int8_t *w,
                                                                               const int rows) {
  vi sum[ROWS][2];
  gemm_i8_kernel_start(f, sum, rows);
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
  gemm_i8_kernel_finish(f, sum, rows);
}

/* ---- Weights near 0 ---- */

static inline int32_t four_at(const uint8_t *x) {
  int32_t four;
  memcpy(&four, x, sizeof four);
  return four;
}

/* Groups with weights that are not near 0 take two rounds: in each, one of two neighbours is 0. */
static inline __attribute__((always_inline)) void multiply_near(const finish *f, const uint8_t *x, int64_t stride,
                                                                const int rows) {
  const i8_block *b = f->block;
  const i8_order *order = &b->order[f->at / VF_PANEL];
  const int8_t *w = b->weight + f->at * (f->job->groups + 1) * 4;
  const uint16_t *group = order->group, *end = group + order->n_pairs;
  vi sum[ROWS][2];
  gemm_i8_kernel_start(f, sum, rows);
  for (; group < end; group++) {
    const int8_t *wg = w + (int64_t)*group * VF_PANEL * 4;
    const uint8_t *xg = x + (int64_t)*group * 4;
    const vi w0 = vi_load(wg), w1 = vi_load(wg + VF_LANES * 4);
    const int8_t *other = wg + VF_PANEL * 4;
    UNROLL for (int r = 0; r < rows; r++) {
      const vi first = vi_set1(four_at(xg + r * stride)), second = vi_set1(four_at(xg + r * stride + 4));
      sum[r][0] = vi_dot_near_two(sum[r][0], first, w0, second, other);
      sum[r][1] = vi_dot_near_two(sum[r][1], first, w1, second, other + VF_LANES * 4);
    }
  }
  for (end += order->n_near; group < end; group++) {
    const int8_t *wg = w + (int64_t)*group * VF_PANEL * 4;
    const vi w0 = vi_load(wg), w1 = vi_load(wg + VF_LANES * 4);
    UNROLL for (int r = 0; r < rows; r++) {
      const vi four = vi_set1(four_at(x + (int64_t)*group * 4 + r * stride));
      sum[r][0] = vi_dot_near(sum[r][0], four, w0);
      sum[r][1] = vi_dot_near(sum[r][1], four, w1);
    }
  }
  for (end += order->n_far; group < end; group++) {
    const int8_t *wg = w + (int64_t)*group * VF_PANEL * 4;
    const vi w0 = vi_load(wg), w1 = vi_load(wg + VF_LANES * 4);
    UNROLL for (int r = 0; r < rows; r++) {
      const vi four = vi_set1(four_at(x + (int64_t)*group * 4 + r * stride));
      sum[r][0] = vi_dot_near(vi_dot_near(sum[r][0], four, vi_evens(w0)), four, vi_odds(w0));
      sum[r][1] = vi_dot_near(vi_dot_near(sum[r][1], four, vi_evens(w1)), four, vi_odds(w1));
    }
  }
  gemm_i8_kernel_finish(f, sum, rows);
}

static inline __attribute__((always_inline)) void multiply_near_tiles(finish f, const uint8_t *x, int64_t stride,
                                                                      int64_t count, const int rows) {
  for (; count > 0; count--, x += rows * stride, f.row += rows, f.row_sum += rows) multiply_near(&f, x, stride, rows);
}

static void multiply_near_all(const finish *f, const uint8_t *x, int64_t stride, int64_t count, int64_t rows) {
  switch (rows) {
    case 4: multiply_near_tiles(*f, x, stride, count, 4); return;
    case 3: multiply_near_tiles(*f, x, stride, count, 3); return;
    case 2: multiply_near_tiles(*f, x, stride, count, 2); return;
    default: multiply_near_tiles(*f, x, stride, count, 1);
  }
}

/* ---- Any weights ---- */

/* Without an instruction for four bytes, products are of two numbers of 16 bits. The rows of a tile are converted to
 * such pairs once for all panels of a block, in parts if they are long; sums are kept in memory between parts. */
#define PART 256 /* groups */
typedef struct pairs {
  int32_t even[ROWS][PART], odd[ROWS][PART];
  int32_t sum[I8_COLUMNS / VF_PANEL][ROWS][2][VF_LANES];
} pairs;

static void gemm_i8_kernel_pair(const uint8_t *x, int64_t stride, int64_t groups, int rows, pairs *to) {
  for (int r = 0; r < rows; r++, x += stride) {
    int64_t g = 0;
    for (; g + VF_LANES <= groups; g += VF_LANES) {
      const vi bytes = vi_load(x + 4 * g);
      vi_store(&to->even[r][g], vi_even_u8(bytes));
      vi_store(&to->odd[r][g], vi_odd_u8(bytes));
    }
    for (; g < groups; g++) {
      uint32_t four;
      memcpy(&four, x + 4 * g, sizeof four);
      to->even[r][g] = (int32_t)(four & 0x00ff00ffu);
      to->odd[r][g] = (int32_t)(four >> 8 & 0x00ff00ffu);
    }
  }
}

static inline __attribute__((always_inline)) void gemm_i8_kernel_add_pairs(const int32_t x[][PART], int64_t g,
                                                                           const vi w0, const vi w1, vi sum[ROWS][2],
                                                                           const int rows) {
  UNROLL for (int r = 0; r < rows; r++) {
    const vi pair = vi_set1(x[r][g]);
    sum[r][0] = vi_dot2(sum[r][0], pair, w0);
    sum[r][1] = vi_dot2(sum[r][1], pair, w1);
  }
}

static inline __attribute__((always_inline)) void gemm_i8_kernel_multiply_pairs(const pairs *x, const int8_t *w,
                                                                                int64_t groups, vi sum[ROWS][2],
                                                                                const int rows) {
  for (int64_t g = 0; g < groups; g++, w += VF_PANEL * 4) {
    const vi w0 = vi_load(w), w1 = vi_load(w + VF_LANES * 4);
    gemm_i8_kernel_add_pairs(x->even, g, vi_even_i8(w0), vi_even_i8(w1), sum, rows);
    gemm_i8_kernel_add_pairs(x->odd, g, vi_odd_i8(w0), vi_odd_i8(w1), sum, rows);
  }
}

/* The groups [first, first + n) of a tile, for all panels of the block. */
static inline __attribute__((always_inline)) void gemm_i8_kernel_multiply_part(finish f, pairs *x, int64_t first,
                                                                               int64_t n, const int rows) {
  const int64_t groups = f.job->groups, panel_bytes = (groups + 1) * VF_PANEL * 4;
  const int8_t *w = f.block->weight + first * VF_PANEL * 4;
  for (int64_t panel = 0; f.at < f.block->n; f.at += VF_PANEL, w += panel_bytes, panel++) {
    vi sum[ROWS][2];
    if (first == 0) {
      gemm_i8_kernel_start(&f, sum, rows);
    } else {
      UNROLL for (int i = 0; i < 2 * rows; i++) sum[i / 2][i % 2] = vi_load(x->sum[panel][i / 2][i % 2]);
    }
    gemm_i8_kernel_multiply_pairs(x, w, n, sum, rows);
    if (first + n == groups) {
      gemm_i8_kernel_finish(&f, sum, rows);
    } else {
      UNROLL for (int i = 0; i < 2 * rows; i++) vi_store(x->sum[panel][i / 2][i % 2], sum[i / 2][i % 2]);
    }
  }
}

static inline __attribute__((always_inline)) void gemm_i8_kernel_multiply_tiles(finish f, const uint8_t *x,
                                                                                int64_t stride, int64_t count,
                                                                                const int rows) {
  const int64_t groups = f.job->groups;
  pairs some;
  for (; count > 0; count--, x += rows * stride, f.row += rows, f.row_sum += rows) {
    if (VI_HAS_DOT8) {
      gemm_i8_kernel_multiply_tile(&f, x, stride, f.block->weight + f.at * (groups + 1) * 4, rows);
      continue;
    }
    for (int64_t first = 0; first < groups; first += PART) {
      const int64_t n = groups - first < PART ? groups - first : PART;
      gemm_i8_kernel_pair(x + 4 * first, stride, n, rows, &some);
      gemm_i8_kernel_multiply_part(f, &some, first, n, rows);
    }
  }
}

static void gemm_i8_kernel_multiply_all(const finish *f, const uint8_t *x, int64_t stride, int64_t count,
                                        int64_t rows) {
  switch (rows) {
#if ROWS == 8
    case 8: gemm_i8_kernel_multiply_tiles(*f, x, stride, count, 8); return;
    case 7: gemm_i8_kernel_multiply_tiles(*f, x, stride, count, 7); return;
    case 6: gemm_i8_kernel_multiply_tiles(*f, x, stride, count, 6); return;
    case 5: gemm_i8_kernel_multiply_tiles(*f, x, stride, count, 5); return;
#endif
    case 4: gemm_i8_kernel_multiply_tiles(*f, x, stride, count, 4); return;
    case 3: gemm_i8_kernel_multiply_tiles(*f, x, stride, count, 3); return;
    case 2: gemm_i8_kernel_multiply_tiles(*f, x, stride, count, 2); return;
    default: gemm_i8_kernel_multiply_tiles(*f, x, stride, count, 1);
  }
}

/* Tiles have about equally many rows: some have one more than the others. With VI_HAS_DOT8 and with weights near 0,
 * each panel goes over all tiles; otherwise each tile goes over all panels. */
void i8_multiply(const i8_job *job, const i8_block *block, const uint8_t *x, int64_t stride, const int32_t *row_sum,
                 int64_t row, int64_t n) {
  const int64_t tiles = (n + ROWS - 1) / ROWS, rows = n / tiles, more = n % tiles, first = more * (rows + 1);
  const bool is_near = VI_HAS_NEAR && block->is_near;
  void (*const multiply)(const finish *, const uint8_t *, int64_t, int64_t, int64_t) =
      is_near ? multiply_near_all : gemm_i8_kernel_multiply_all;
  for (int64_t at = 0; at < block->n; at += VI_HAS_DOT8 || is_near ? VF_PANEL : block->n) {
    const finish front = {job, block, at, row_sum, row}, back = {job, block, at, row_sum + first, row + first};
    if (more > 0) multiply(&front, x, stride, more, rows + 1);
    multiply(&back, x + first * stride, stride, tiles - more, rows);
  }
  if (job->has_epilogue) epilogue_rows(&job->epilogue, row, n, block->first, block->n);
}
