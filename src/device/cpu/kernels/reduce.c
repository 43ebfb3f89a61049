/* Sums, means, maxima and minima over some axes for f32, and sums of bytes. Either the reduced axes are contiguous
 * (runs are folded in vectors), or a kept axis is (vectors hold several results). If neither is, runs are gathered. */
#include "device/cpu/kernels/reduce.h"

#include "device/cpu/kernels/turn.h"
#include "ops/operand.h"

#define ITEM 16384 /* elements read per item */
#define BLOCK 2048 /* elements summed in f32 */
#define COLUMNS REDUCE_COLUMNS
#define SHORT_RUN 64
#define ROWS 64 /* rows summed together: sums of sums lose fewer digits */

/* ---- Axes ----------------------------------------------------------------------------------------------------- */

static void reduce_kernel_add_axis(axes *a, int64_t dim, int64_t stride) {
  a->count *= dim;
  if (dim == 1) return;
  if (a->rank > 0 && a->stride[a->rank - 1] == stride * dim) {
    a->dim[a->rank - 1] *= dim;
    a->stride[a->rank - 1] = stride;
    return;
  }
  a->dim[a->rank] = dim;
  a->stride[a->rank++] = stride;
}

/* A stride of 0 repeats one element, which does not count as contiguous. */
static uint64_t reduce_kernel_distance(int64_t stride) {
  return stride == 0 ? UINT64_MAX : stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

/* The order of folding does not matter, but the axis with the smallest stride must be last. */
static void put_fastest_last(axes *a) {
  for (uint32_t i = 0; i + 1 < a->rank; i++)
    if (reduce_kernel_distance(a->stride[i]) < reduce_kernel_distance(a->stride[a->rank - 1])) {
      const int64_t dim = a->dim[i], stride = a->stride[i], last = a->rank - 1;
      a->dim[i] = a->dim[last];
      a->stride[i] = a->stride[last];
      a->dim[last] = dim;
      a->stride[last] = stride;
    }
}

bool reduce_read(reduction *r, const berth_op_call *call) {
  const berth_tensor *in = &call->in[BERTH__REDUCE_X];
  berth__list list;
  uint32_t mask;
  if (berth__call_has(call, BERTH__REDUCE_AXES_OPERAND))
    return false; /* constant lists have been turned into attributes */
  berth__attr_list(&call->attrs[BERTH__REDUCE_AXES], &list);
  if (berth__list_axes(&list, in->rank, &mask, NULL) != BERTH_OK) return false;
  if (list.count == 0) mask = (1u << in->rank) - 1;
  r->kept = r->gone = (axes){.count = 1};
  for (uint32_t i = 0; i < in->rank; i++)
    reduce_kernel_add_axis(mask >> i & 1u ? &r->gone : &r->kept, in->dim[i], in->stride[i]);
  if (r->gone.count == 0 || r->kept.count == 0) return false;
  if (r->gone.rank == 0) { /* single elements: rows of one, or a run of one */
    r->gone.rank = 1;
    r->gone.dim[0] = 1;
    r->gone.stride[0] = r->kept.rank == 0;
  }
  put_fastest_last(&r->gone);
  r->in_runs = r->gone.stride[r->gone.rank - 1] == 1 || reduce_last_of(&r->kept, r->kept.stride, 0) != 1;
  r->step = r->in_runs ? r->gone.stride[r->gone.rank - 1] : 1;
  r->run = reduce_last_of(&r->gone, r->gone.dim, 1);
  r->n_inner = r->in_runs ? 1 : reduce_last_of(&r->kept, r->kept.dim, 1);
  r->n_outer = r->kept.count / r->n_inner;
  r->per_item = r->in_runs ? (r->gone.count < ITEM ? ITEM / r->gone.count : 1) : COLUMNS;
  return true;
}

static bool reduce_kernel_takes(const berth_op_call *call) {
  reduction r;
  return call->in[BERTH__REDUCE_X].type == BERTH_F32 && reduce_read(&r, call);
}

int64_t reduce_items(const berth_op_call *call) {
  reduction r;
  if (!reduce_read(&r, call)) return 0;
  return r.in_runs ? reduce_pieces(r.n_outer, r.per_item) : r.n_outer * reduce_pieces(r.n_inner, r.per_item);
}

int64_t reduce_offset_of(const axes *a, uint32_t n, int64_t at) {
  int64_t offset = 0;
  for (uint32_t i = n; i-- > 0; at /= a->dim[i]) offset += at % a->dim[i] * a->stride[i];
  return offset;
}

/* ---- Folding -------------------------------------------------------------------------------------------------- */

/* NaN in either operand is the result. */
static inline vf reduce_kernel_larger(vf x, vf most) { return vf_pick_nan(x, x, vf_max(x, most)); }
static inline vf reduce_kernel_smaller(vf x, vf least) { return vf_pick_nan(x, x, vf_min(x, least)); }
static inline vf reduce_kernel_plus(vf x, vf sum) { return x + sum; }

static inline float fold_lanes(vf x, vf (*join)(vf, vf), float start) {
  float lane[VF_LANES];
  vf_store(lane, x);
  for (int i = 0; i < VF_LANES; i++) {
    const float next = lane[i];
    const bool is_beyond = join == reduce_kernel_larger ? next > start : next < start;
    if (isnan(next) || (is_beyond && !isnan(start))) start = next;
  }
  return start;
}

static inline float reduce_kernel_fold_run(const float *x, int64_t n, float start, vf (*join)(vf, vf)) {
  const vf nothing = vf_set1(start);
  vf state[4] = {nothing, nothing, nothing, nothing};
  int64_t i = 0;
  for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES)
    for (int k = 0; k < 4; k++) state[k] = join(vf_load(x + i + k * VF_LANES), state[k]);
  for (; i < n; i += VF_LANES) state[0] = join(vf_load_else(x + i, vf_tail(n - i), nothing), state[0]);
  const vf all = join(join(state[0], state[1]), join(state[2], state[3]));
  return join == reduce_kernel_plus ? vf_sum(all) : fold_lanes(all, join, start);
}

/* Two vectors of columns, `rows` rows. */
static inline void fold_rows(const float *x, int64_t step, int64_t rows, int64_t columns, vf state[2],
                             vf (*join)(vf, vf)) {
  const int64_t first = vf_tail(columns), second = columns - first;
  if (columns == COLUMNS)
    for (int64_t i = 0; i < rows; i++)
      for (int k = 0; k < 2; k++) state[k] = join(vf_load(x + i * step + k * VF_LANES), state[k]);
  else
    for (int64_t i = 0; i < rows; i++) {
      state[0] = join(vf_load_n(x + i * step, first), state[0]);
      if (second > 0) state[1] = join(vf_load_n(x + i * step + VF_LANES, second), state[1]);
    }
}

static float largest_run(const float *x, int64_t n) {
  return reduce_kernel_fold_run(x, n, -INFINITY, reduce_kernel_larger);
}
static float smallest_run(const float *x, int64_t n) {
  return reduce_kernel_fold_run(x, n, INFINITY, reduce_kernel_smaller);
}
static float sum_run(const float *x, int64_t n) { return reduce_kernel_fold_run(x, n, 0, reduce_kernel_plus); }
static void largest_rows(const float *x, int64_t step, int64_t rows, int64_t columns, vf state[2]) {
  fold_rows(x, step, rows, columns, state, reduce_kernel_larger);
}
static void smallest_rows(const float *x, int64_t step, int64_t rows, int64_t columns, vf state[2]) {
  fold_rows(x, step, rows, columns, state, reduce_kernel_smaller);
}
static void sum_rows(const float *x, int64_t step, int64_t rows, int64_t columns, vf state[2]) {
  fold_rows(x, step, rows, columns, state, reduce_kernel_plus);
}

typedef struct way {
  float (*run)(const float *x, int64_t n); /* at most BLOCK elements */
  void (*rows)(const float *x, int64_t step, int64_t rows, int64_t columns, vf state[2]);
  vf (*join)(vf, vf);
  float start;
  bool is_sum;
} way;

static way way_of(berth__op_code code) {
  if (code == BERTH__OP_reduce_max) return (way){largest_run, largest_rows, reduce_kernel_larger, -INFINITY, false};
  if (code == BERTH__OP_reduce_min) return (way){smallest_run, smallest_rows, reduce_kernel_smaller, INFINITY, false};
  return (way){sum_run, sum_rows, reduce_kernel_plus, 0, true};
}

/* ---- Results -------------------------------------------------------------------------------------------------- */

/* The maximum or minimum of many short runs: the lanes are folded once, not after every run. */
static inline float fold_runs(const reduction *r, const float *x, float start, vf (*join)(vf, vf)) {
  const vf nothing = vf_set1(start);
  vf state = nothing;
  reduce_place at = {{0}, 0};
  for (int64_t k = 0; k < r->gone.count / r->run; k++, reduce_next(&r->gone, &at)) {
    const float *run = x + at.offset;
    for (int64_t i = 0; i < r->run; i += VF_LANES)
      state = join(vf_load_else(run + i, vf_tail(r->run - i), nothing), state);
  }
  return fold_lanes(state, join, start);
}

/* The sum of many short runs, partly in f32. */
static double sum_runs(const reduction *r, const float *x) {
  const int64_t each = BLOCK / (VF_LANES * r->run) + 1, runs = r->gone.count / r->run;
  reduce_place at = {{0}, 0};
  double sum = 0;
  for (int64_t k = 0; k < runs;) {
    vf part = vf_zero();
    for (const int64_t end = runs - k < each ? runs : k + each; k < end; k++, reduce_next(&r->gone, &at)) {
      int64_t i = 0;
      for (; i + VF_LANES <= r->run; i += VF_LANES) part = part + vf_load(x + at.offset + i);
      if (i < r->run) part = part + vf_load_n(x + at.offset + i, r->run - i);
    }
    sum += (double)vf_sum(part);
  }
  return sum;
}

/* One result, whose elements are in runs. */
static float reduce_runs(const reduction *r, const way *w, const float *x) {
  double sum = 0;
  float state = w->start, gathered[BLOCK];
  const bool is_short = r->step == 1 && r->run <= SHORT_RUN && r->gone.rank > 1;
  if (w->is_sum && is_short) return (float)sum_runs(r, x);
  if (!w->is_sum && is_short)
    return w->join == reduce_kernel_larger ? fold_runs(r, x, w->start, reduce_kernel_larger)
                                           : fold_runs(r, x, w->start, reduce_kernel_smaller);
  reduce_place at = {{0}, 0};
  for (int64_t k = 0; k < r->gone.count / r->run; k++, reduce_next(&r->gone, &at)) {
    for (int64_t i = 0; i < r->run; i += BLOCK) {
      const int64_t n = r->run - i < BLOCK ? r->run - i : BLOCK;
      const float *run = x + at.offset + i * r->step;
      if (r->step != 1) {
        turn_together(gathered, run, r->step, n, sizeof *run);
        run = gathered;
      }
      const float part = w->run(run, n);
      if (w->is_sum)
        sum += (double)part;
      else
        state = fold_lanes(vf_set1(part), w->join, state);
    }
  }
  return w->is_sum ? (float)sum : state;
}

/* Up to COLUMNS neighbouring results. */
static void reduce_columns(const reduction *r, const way *w, const float *x, int64_t columns, vf state[2]) {
  const int64_t step = reduce_last_of(&r->gone, r->gone.stride, 0);
  reduce_place at = {{0}, 0};
  state[0] = state[1] = vf_set1(w->start);
  for (int64_t k = 0; k < r->gone.count / r->run; k++, reduce_next(&r->gone, &at)) {
    for (int64_t i = 0; i < r->run; i += ROWS) {
      vf part[2] = {vf_set1(w->start), vf_set1(w->start)};
      w->rows(x + at.offset + i * step, step, r->run - i < ROWS ? r->run - i : ROWS, columns, part);
      state[0] = w->join(part[0], state[0]);
      state[1] = w->join(part[1], state[1]);
    }
  }
}

/* Results with few elements each, stored one after the other: one per lane of a vector. */
static bool has_short_lines(const reduction *r) {
  return r->gone.rank == 1 && r->step == 1 && r->run <= VF_LANES && r->kept.rank == 1 && r->kept.stride[0] == r->run;
}

static void reduce_short(const reduction *r, const way *w, const float *x, int64_t n, float *out, bool is_mean) {
  for (int64_t i = 0; i < n; i += VF_LANES) {
    const int64_t lanes = vf_tail(n - i);
    vf turned[VF_LANES];
    for (int64_t k = 0; k < VF_LANES; k++) turned[k] = k < lanes ? vf_load_n(x + (i + k) * r->run, r->run) : vf_zero();
    vf_transpose(turned);
    vf state = turned[0];
    for (int64_t k = 1; k < r->run; k++) state = w->join(turned[k], state);
    if (is_mean) state = state / vf_set1((float)r->run);
    vf_store_n(out + i, state, lanes);
  }
}

static void run_item_of_runs(const reduction *r, const way *w, const berth_op_call *call, int64_t item) {
  const int64_t begin = item * r->per_item, left = r->n_outer - begin;
  const bool is_mean = berth__call_code(call) == BERTH__OP_reduce_mean;
  if (has_short_lines(r)) {
    reduce_short(r, w, (const float *)call->in[BERTH__REDUCE_X].data + begin * r->run,
                 left < r->per_item ? left : r->per_item, (float *)call->out[0].data + begin, is_mean);
    return;
  }
  for (int64_t i = begin; i < begin + (left < r->per_item ? left : r->per_item); i++) {
    const float *x = (const float *)call->in[BERTH__REDUCE_X].data + reduce_offset_of(&r->kept, r->kept.rank, i);
    const float value = reduce_runs(r, w, x);
    ((float *)call->out[0].data)[i] = is_mean ? value / (float)r->gone.count : value;
  }
}

static void run_item_of_columns(const reduction *r, const way *w, const berth_op_call *call, int64_t item) {
  const int64_t across = reduce_pieces(r->n_inner, COLUMNS), outer = item / across, column = item % across * COLUMNS;
  const int64_t left = r->n_inner - column, n = left < COLUMNS ? left : COLUMNS;
  const float *x =
      (const float *)call->in[BERTH__REDUCE_X].data + reduce_offset_of(&r->kept, r->kept.rank - 1, outer) + column;
  float *y = (float *)call->out[0].data + outer * r->n_inner + column;
  vf state[2];
  reduce_columns(r, w, x, n, state);
  if (berth__call_code(call) == BERTH__OP_reduce_mean)
    for (int k = 0; k < 2; k++) state[k] = state[k] / vf_set1((float)r->gone.count);
  vf_store_n(y, state[0], vf_tail(n));
  if (n > VF_LANES) vf_store_n(y + VF_LANES, state[1], n - VF_LANES);
}

static berth_status reduce_kernel_run(const berth_op_call *call, berth_error *err) {
  reduction r;
  const way w = way_of(berth__call_code(call));
  (void)err;
  if (!reduce_read(&r, call)) return BERTH_OK;
  for (int64_t item = call->begin; item < call->end; item++)
    (r.in_runs ? run_item_of_runs : run_item_of_columns)(&r, &w, call, item);
  return BERTH_OK;
}

/* ---- Bytes ---------------------------------------------------------------------------------------------------- */

static bool bytes_take(const berth_op_call *call) {
  reduction r;
  return reduce_read(&r, call) && r.step == 1;
}

static inline vi bytes_at(const berth_tensor *in, int64_t index, int64_t n) {
  const uint8_t *at = (const uint8_t *)in->data + index;
  return in->type == BERTH_U8 ? vi_load_u8_n(at, n) : vi_load_i8_n(at, n);
}

static int32_t bytes_of_runs(const reduction *r, const berth_tensor *in, int64_t base) {
  vi sum = vi_set1(0);
  int32_t lane[VF_LANES];
  uint32_t all = 0;
  for (int64_t k = 0; k < r->gone.count / r->run; k++) {
    const int64_t run = base + reduce_offset_of(&r->gone, r->gone.rank - 1, k);
    for (int64_t at = 0; at < r->run; at += VF_LANES) sum = vi_add(sum, bytes_at(in, run + at, vf_tail(r->run - at)));
  }
  vi_store(lane, sum);
  for (int i = 0; i < VF_LANES; i++) all += (uint32_t)lane[i];
  memcpy(lane, &all, sizeof all);
  return lane[0];
}

static void bytes_of_columns(const reduction *r, const berth_op_call *call, int64_t item) {
  const int64_t across = reduce_pieces(r->n_inner, COLUMNS), outer = item / across, column = item % across * COLUMNS,
                step = reduce_last_of(&r->gone, r->gone.stride, 0);
  const int64_t left = r->n_inner - column, n = left < COLUMNS ? left : COLUMNS;
  const int64_t first = reduce_offset_of(&r->kept, r->kept.rank - 1, outer) + column;
  vi sum[2] = {vi_set1(0), vi_set1(0)};
  for (int64_t k = 0; k < r->gone.count / r->run; k++) {
    const int64_t rows = first + reduce_offset_of(&r->gone, r->gone.rank - 1, k);
    for (int64_t i = 0; i < r->run; i++) {
      sum[0] = vi_add(sum[0], bytes_at(&call->in[BERTH__REDUCE_X], rows + i * step, vf_tail(n)));
      if (n > VF_LANES)
        sum[1] = vi_add(sum[1], bytes_at(&call->in[BERTH__REDUCE_X], rows + i * step + VF_LANES, n - VF_LANES));
    }
  }
  int32_t all[COLUMNS];
  for (int k = 0; k < 2; k++) vi_store(all + k * VF_LANES, sum[k]);
  memcpy((int32_t *)call->out[0].data + outer * r->n_inner + column, all, (size_t)n * sizeof *all);
}

static berth_status bytes_run(const berth_op_call *call, berth_error *err) {
  reduction r;
  (void)err;
  if (!reduce_read(&r, call)) return BERTH_OK;
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t begin = item * r.per_item, end = begin + r.per_item < r.n_outer ? begin + r.per_item : r.n_outer;
    if (!r.in_runs) bytes_of_columns(&r, call, item);
    for (int64_t i = begin; r.in_runs && i < end; i++)
      ((int32_t *)call->out[0].data)[i] =
          bytes_of_runs(&r, &call->in[BERTH__REDUCE_X], reduce_offset_of(&r.kept, r.kept.rank, i));
  }
  return BERTH_OK;
}

#define ROW(op) \
  { .name = #op, .code = BERTH__OP_##op, .takes = reduce_kernel_takes, .items = reduce_items, .run = reduce_kernel_run }

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_reduce)[] = {
    ROW(reduce_sum),
    ROW(reduce_mean),
    ROW(reduce_max),
    ROW(reduce_min),
    {.name = "reduce_bytes",
     .code = BERTH__OP_reduce_bytes,
     .takes = bytes_take,
     .items = reduce_items,
     .run = bytes_run},
    {0},
};
