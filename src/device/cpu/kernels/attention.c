/* attention with an online softmax: keys are processed in blocks with a running maximum and sum, so only the scores of
 * one block exist at a time.
 *
 * Queries lie side by side in the lanes of vectors (a tile of WIDTH queries), and keys one below the other. Both
 * products then broadcast elements of k and v from where they lie, whatever their strides, and the softmax works on
 * whole vectors. Few queries (decoding) are computed one by one (attention_row.c).
 *
 * Other types are converted to f32 block by block: queries and biases while they are transposed, keys and values in
 * scratch.
 *
 * Results that are not finite are left to the reference kernel, which handles masked keys exactly. */
#include "device/cpu/kernels/attention_job.h"

#define FEW 4 /* so few queries of a head are not worth a tile */
#if VF_LANES == 16
#define ROWS 8 /* sums of a tile that stay in registers: ROWS x WIDTH */
#define FEW_ROWS 4
#elif VF_LANES == 8
#define ROWS 6
#define FEW_ROWS 4 /* with fewer rows, sums would wait for each other */
#else
#define ROWS 4
#define FEW_ROWS 2
#endif

/* ---- Products ---- */

/* out[r] (+)= sum over i < n of a[r * a_row + i * a_step] * b[i], where out and b have rows of WIDTH. */
static inline __attribute__((always_inline)) void attention_kernel_multiply_tile(const float *a, int64_t a_row,
                                                                                 int64_t a_step, const float *b,
                                                                                 int64_t n, float *out, bool adds,
                                                                                 const int rows, const int vectors) {
  vf sum[ROWS][2];
  const float *at[ROWS];
  UNROLL for (int r = 0; r < rows; r++) {
    at[r] = a + r * a_row;
    UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = adds ? vf_load(out + r * WIDTH + v * VF_LANES) : vf_zero();
  }
  for (int64_t i = 0; i < n; i++, b += WIDTH) {
    vf lane[2];
    UNROLL for (int v = 0; v < vectors; v++) lane[v] = vf_load(b + v * VF_LANES);
    UNROLL for (int r = 0; r < rows; r++) {
      const vf factor = vf_set1(at[r][i * a_step]);
      UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = vf_fma(factor, lane[v], sum[r][v]);
    }
  }
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
      vf_store(out + r * WIDTH + v * VF_LANES, sum[r][v]);
}

static inline __attribute__((always_inline)) void multiply_rows(const float *a, int64_t a_row, int64_t a_step,
                                                                const float *b, int64_t n, float *out, bool adds,
                                                                int64_t n_rows, const int vectors) {
  int64_t r = 0;
  /* Two tiles of few rows instead of a full one and an even shorter remainder. */
  const bool ends_with_two = 2 * FEW_ROWS > ROWS && n_rows > ROWS && n_rows % ROWS == 2 * FEW_ROWS - ROWS;
  const int64_t most = n_rows - n_rows % ROWS - (ends_with_two ? ROWS : 0);
  for (; r < most; r += ROWS)
    attention_kernel_multiply_tile(a + r * a_row, a_row, a_step, b, n, out + r * WIDTH, adds, ROWS, vectors);
  for (; r + FEW_ROWS <= n_rows; r += FEW_ROWS)
    attention_kernel_multiply_tile(a + r * a_row, a_row, a_step, b, n, out + r * WIDTH, adds, FEW_ROWS, vectors);
  for (; r < n_rows; r++)
    attention_kernel_multiply_tile(a + r * a_row, a_row, a_step, b, n, out + r * WIDTH, adds, 1, vectors);
}

static void attention_kernel_multiply(const float *a, int64_t a_row, int64_t a_step, const float *b, int64_t n,
                                      float *out, bool adds, int64_t n_rows, int vectors) {
  if (vectors == 2 && a_step == 1)
    multiply_rows(a, a_row, 1, b, n, out, adds, n_rows, 2);
  else if (vectors == 2 && a_row == 1)
    multiply_rows(a, 1, a_step, b, n, out, adds, n_rows, 2);
  else if (vectors == 2)
    multiply_rows(a, a_row, a_step, b, n, out, adds, n_rows, 2);
  else
    multiply_rows(a, a_row, a_step, b, n, out, adds, n_rows, 1);
}

/* ---- Tiles in and out ---- */

/* The queries as columns; unused lanes are 0. */
static void load_queries(const attention_job *j, const attention_block *b) {
  const berth__heads *h = &j->a.q;
  const char *q = j->q + berth__heads_at(h, b->batch, b->head, b->row) * j->element;
  const vf scale = vf_set1((float)j->a.scale);
  for (int64_t lane = 0; lane < b->vectors * VF_LANES; lane += VF_LANES)
    for (int64_t d = 0; d < h->size; d += VF_LANES) {
      vf x[VF_LANES];
      const int64_t n = vf_tail(h->size - d);
      for (int64_t i = 0; i < VF_LANES; i++) {
        float line[VF_LANES] = {0};
        const char *row = q + ((lane + i) * h->row_stride + d * h->stride) * j->element;
        x[i] = vf_zero();
        if (lane + i >= b->n_rows) continue;
        if (h->stride == 1 && j->type == BERTH_F32) {
          x[i] = vf_load_n((const float *)(const void *)row, n) * scale;
          continue;
        }
        chain_load(line, j->type, row, h->stride, n);
        x[i] = vf_load(line) * scale;
      }
      vf_transpose(x);
      for (int64_t i = 0; i < n; i++) vf_store(j->query + (d + i) * WIDTH + lane, x[i]);
    }
}

static void store_vector(const attention_job *j, char *to, vf x, int64_t n) {
  float line[VF_LANES];
  if (j->type == BERTH_F32) {
    vf_store_n((float *)(void *)to, x, n);
    return;
  }
  vf_store(line, x);
  chain_store(to, j->type, line, n);
}

/* The sum of a query's weights, including its head's sink. A query that sees no keys has no sink. */
static vf attention_kernel_with_sink(const attention_job *j, int64_t head, vf total, int64_t lane) {
  float more[VF_LANES];
  if (j->a.sinks == NULL) return total;
  for (int64_t i = 0; i < VF_LANES; i++)
    more[i] = j->total[lane + i] != 0 ? attention_sink(j, head, j->most[lane + i]) : 0;
  return total + vf_load(more);
}

static void store_results(const attention_job *j, const attention_block *b) {
  const berth__heads *h = &j->a.out;
  char *out = j->out + berth__heads_at(h, b->batch, b->head, b->row) * j->element;
  for (int64_t lane = 0; lane < b->vectors * VF_LANES; lane += VF_LANES) {
    const vf total = attention_kernel_with_sink(j, b->head, vf_load(j->total + lane), lane);
    const vf factor = vf_pick_eq(total, vf_zero(), vf_zero(), vf_set1(1.0f) / total);
    for (int64_t d = 0; d < j->a.v.size; d += VF_LANES) {
      vf x[VF_LANES];
      const int64_t n = vf_tail(j->a.v.size - d);
      for (int64_t i = 0; i < VF_LANES; i++)
        x[i] = factor * (i < n ? vf_load(j->sum + (d + i) * WIDTH + lane) : vf_zero());
      vf_transpose(x);
      for (int64_t i = 0; i < VF_LANES && lane + i < b->n_rows; i++)
        store_vector(j, out + ((lane + i) * h->row_stride + d) * j->element, x[i], n);
    }
  }
}

static bool is_finite(const attention_job *j, const attention_block *b) {
  vf probe = vf_zero();
  for (int64_t lane = 0; lane < b->vectors * VF_LANES; lane += VF_LANES) {
    probe = probe + vf_load(j->total + lane) * vf_zero();
    for (int64_t d = 0; d < j->a.v.size; d++) probe = vf_fma(vf_load(j->sum + d * WIDTH + lane), vf_zero(), probe);
  }
  return vf_sum(probe) == 0;
}

/* ---- Masks and biases ---- */

/* A bias per query and key without a mask, contiguous along the keys: transposed in squares. */
static void turn_bias(const attention_job *j, const attention_block *b, int64_t key, int64_t n) {
  const int64_t *s = j->a.bias_stride;
  const char *bias =
      (const char *)j->a.bias->data + (b->batch * s[0] + b->head * s[1] + b->row * s[2] + key) * j->element;
  for (int64_t lane = 0; lane < b->n_rows; lane += VF_LANES)
    for (int64_t i = 0; i < n; i += VF_LANES) {
      vf x[VF_LANES];
      for (int64_t k = 0; k < VF_LANES; k++) {
        const char *row = bias + ((lane + k) * s[2] + i) * j->element;
        float line[VF_LANES] = {0};
        x[k] = vf_zero();
        if (lane + k >= b->n_rows) continue;
        if (j->type == BERTH_F32) {
          x[k] = vf_load_n((const float *)(const void *)row, vf_tail(n - i));
          continue;
        }
        chain_load(line, j->type, row, 1, vf_tail(n - i));
        x[k] = vf_load(line);
      }
      vf_transpose(x);
      for (int64_t k = 0; k < vf_tail(n - i); k++) vf_store(j->beside + (i + k) * WIDTH + lane, x[k]);
    }
}

/* A bias per key only: loaded for all queries at once. */
static void load_bias_keys(const attention_job *j, const attention_block *b, int64_t key, int64_t n) {
  const int64_t *s = j->a.bias_stride, at = b->batch * s[0] + b->head * s[1] + key * s[3];
  const berth_type type = j->a.bias->type;
  chain_load(j->beside, type, (const char *)j->a.bias->data + at * (int64_t)berth_type_size(type), s[3], n);
}

static void load_beside(const attention_job *j, const attention_block *b, int64_t key, int64_t n) {
  if (!j->has_beside) return;
  if (!j->has_beside_rows && j->a.mask == NULL) {
    load_bias_keys(j, b, key, n);
    return;
  }
  if (j->has_beside_rows && j->a.mask == NULL && j->a.bias_stride[3] == 1) {
    turn_bias(j, b, key, n);
    return;
  }
  for (int64_t i = 0; i < n && !j->has_beside_rows; i++)
    j->beside[i] = attention_beside_at(&j->a, b->batch, b->head, b->row, key + i);
  for (int64_t lane = 0; lane < b->n_rows && j->has_beside_rows; lane++)
    for (int64_t i = 0; i < n; i++)
      j->beside[i * WIDTH + lane] = attention_beside_at(&j->a, b->batch, b->head, b->row + lane, key + i);
}

/* ---- Softmax ---- */

/* Adds the bias to the scores of keys [key, key + n) and masks those outside the edges; returns the largest score.
 * Edges are counted from the start of the block, so they are exact in f32 however far a ring buffer has advanced, and
 * so is the comparison with keys further away. */
static vf attention_kernel_mend(const attention_job *j, const attention_block *b, int64_t key, int64_t n,
                                int64_t lane) {
  const vf first = vf_load(j->first + lane), last = vf_load(j->last + lane), hidden = vf_set1(-INFINITY);
  const int64_t from_first = key - b->first, from_last = key - b->last;
  const bool is_edge = (float)from_first < j->first[b->n_rows - 1] || (float)(from_last + n) > j->last[0];
  vf most = vf_load(j->most + lane);
  for (int64_t i = 0; i < n; i++) {
    float *at = j->score + i * WIDTH + lane;
    vf x = vf_load(at);
    if (j->a.cap != 0) x = vf_tanh(x * vf_set1((float)(1 / j->a.cap))) * vf_set1((float)j->a.cap);
    if (j->has_beside) x = x + (j->has_beside_rows ? vf_load(j->beside + i * WIDTH + lane) : vf_set1(j->beside[i]));
    if (is_edge) {
      const vf after = vf_set1((float)(from_first + i)), before = vf_set1((float)(from_last + i));
      x = vf_pick_lt(after, first, hidden, vf_pick_lt(before, last, x, hidden));
    }
    if (is_edge || j->has_beside || j->a.cap != 0) vf_store(at, x);
    most = vf_max(most, x);
  }
  return most;
}

/* Turns scores into weights, and rescales earlier sums to the new maximum. */
static void attention_kernel_weigh(const attention_job *j, const attention_block *b, int64_t key, int64_t n) {
  for (int64_t lane = 0; lane < b->vectors * VF_LANES; lane += VF_LANES) {
    const vf before = vf_load(j->most + lane), most = attention_kernel_mend(j, b, key, n, lane);
    const vf factor = attention_exp(before - most);
    vf total = vf_load(j->total + lane) * factor;
    for (int64_t i = 0; i < n; i++) {
      const vf weight = attention_exp(vf_load(j->score + i * WIDTH + lane) - most);
      vf_store(j->score + i * WIDTH + lane, weight);
      total = total + weight;
    }
    vf_store(j->most + lane, most);
    vf_store(j->total + lane, total);
    for (int64_t d = 0; d < j->a.v.size && key > b->first; d++) {
      float *sum = j->sum + d * WIDTH + lane;
      vf_store(sum, vf_load(sum) * factor);
    }
  }
}

static void start_block(const attention_job *j, attention_block *b) {
  int64_t first, last;
  berth__attention_range(&j->a, b->keys, b->row, &b->first, &last);
  berth__attention_range(&j->a, b->keys, b->row + b->n_rows - 1, &first, &b->last);
  for (int64_t lane = 0; lane < WIDTH; lane++) {
    berth__attention_range(&j->a, b->keys, b->row + attention_smaller(lane, b->n_rows - 1), &first, &last);
    j->first[lane] = (float)(first - b->first);
    j->last[lane] = (float)(last - b->last);
    j->most[lane] = -FLT_MAX;
    j->total[lane] = 0;
  }
  memset(j->sum, 0, (size_t)(j->a.v.size * WIDTH) * sizeof *j->sum);
  if (j->has_beside_rows) memset(j->beside, 0, KEYS * WIDTH * sizeof *j->beside);
}

static berth_status attend_tile(const attention_job *j, attention_block *b, berth_error *err) {
  start_block(j, b);
  load_queries(j, b);
  for (int64_t key = b->first, n; key < b->last; key += n) {
    n = berth__attention_run(&j->a, key, attention_smaller(KEYS, b->last - key));
    load_beside(j, b, key, n);
    const attention_wide k = attention_rows(j, j->k, b->k, &j->a.k, key, n);
    attention_kernel_multiply(k.at, k.row, k.step, j->query, j->a.q.size, j->score, false, n, b->vectors);
    attention_kernel_weigh(j, b, key, n);
    const attention_wide v = attention_rows(j, j->v, b->v, &j->a.v, key, n);
    attention_kernel_multiply(v.at, v.step, v.row, j->score, n, j->sum, true, j->a.v.size, b->vectors);
  }
  if (!is_finite(j, b)) return attention_leave(j, b, err);
  store_results(j, b);
  return BERTH_OK;
}

/* ---- The calls ---- */

static bool does_rows(const berth__attention *a) { return a->q.length <= FEW && a->k.stride == 1 && a->v.stride == 1; }

static bool attention_kernel_takes(const berth_op_call *call) {
  const berth_type cache = call->in[BERTH__ATTENTION_K].type;
  if (berth__type_is_block(cache) && blocks_split_of(cache) == NULL) return false;
  return call->out[0].type != BERTH_F64 && cache != BERTH_F64;
}

/* Work items are tiles of queries, or whole heads if there are few queries. */
static int64_t attention_kernel_tiles_of(const berth__attention *a) {
  return does_rows(a) ? 1 : a->q.length / WIDTH + (a->q.length % WIDTH != 0);
}

static int64_t attention_kernel_items(const berth_op_call *call) {
  berth__attention a;
  berth__attention_of(call, &a);
  return a.q.batch * a.q.heads * attention_kernel_tiles_of(&a);
}

/* Multiplications that are worth waking a thread for. */
#define WORTH 400000

static int64_t attention_kernel_grain(const berth_op_call *call) {
  berth__attention a;
  berth__attention_of(call, &a);
  const int64_t rows = attention_smaller(a.q.length, does_rows(&a) ? FEW : WIDTH);
  return WORTH / (rows * a.k.length * (a.q.size + a.v.size + 16) + 1) + 1;
}

static uint64_t floats_of(const berth__attention *a) {
  const int64_t size = a->q.size, rows = a->q.size + VF_LANES + a->k.length, edges = 4 * WIDTH;
  return (uint64_t)(does_rows(a) ? rows : (size + a->v.size + 2 * KEYS) * WIDTH + edges);
}

/* For keys and values that are not f32: one converted block, and with few queries the sums of one query. */
static uint64_t wide_floats(const berth_op_call *call, const berth__attention *a) {
  if (call->in[BERTH__ATTENTION_K].type == BERTH_F32 && call->out[0].type == BERTH_F32) return 0;
  const int64_t most = a->k.size > a->v.size ? a->k.size : a->v.size;
  return (uint64_t)(KEYS * most + a->v.size);
}

static uint64_t attention_kernel_scratch(const berth_op_call *call) {
  berth__attention a;
  berth__attention_of(call, &a);
  const uint64_t own = (floats_of(&a) + wide_floats(call, &a)) * sizeof(float);
  const uint64_t left = ((const berth__op *)call->user)->family->scratch(call);
  return own > left ? own : left;
}

static void attention_kernel_describe(const berth_op_call *call, attention_job *j) {
  berth__attention_of(call, &j->a);
  const berth__attention *a = &j->a;
  j->q = call->in[BERTH__ATTENTION_Q].data;
  j->k = call->in[BERTH__ATTENTION_K].data;
  j->v = call->in[BERTH__ATTENTION_V].data;
  j->out = call->out[0].data;
  j->type = call->out[0].type;
  j->element = (int64_t)berth_type_size(j->type);
  j->kv_type = call->in[BERTH__ATTENTION_K].type;
  j->kv_element = (int64_t)berth_type_size(j->kv_type);
  j->reads_blocks =
      j->kv_type == BERTH_Q8_0 && does_rows(a) && a->k.size % Q8_ELEMENTS == 0 && a->v.size % Q8_ELEMENTS == 0;
  j->reads_halves = j->kv_type == BERTH_F16 && does_rows(a);
  j->wide = (float *)call->scratch + floats_of(a);
  j->has_beside = a->mask != NULL || a->bias != NULL;
  j->has_beside_rows = a->mask_stride[2] != 0 || a->bias_stride[2] != 0;
  j->query = call->scratch;
  j->score = j->query + (does_rows(a) ? a->q.size + VF_LANES : a->q.size * WIDTH);
  j->sum = j->wide + (wide_floats(call, a) != 0 ? wide_floats(call, a) - (uint64_t)a->v.size : 0);
  if (does_rows(a)) return;
  j->beside = j->score + KEYS * WIDTH;
  j->most = j->beside + KEYS * WIDTH;
  j->total = j->most + WIDTH;
  j->first = j->total + WIDTH;
  j->last = j->first + WIDTH;
  j->sum = j->last + WIDTH;
}

static berth_status attention_kernel_run_item(const attention_job *j, int64_t item, berth_error *err) {
  const berth__attention *a = &j->a;
  const int64_t tiles = attention_kernel_tiles_of(a), tile = item % tiles, head = item / tiles % a->q.heads;
  const int64_t kv_head = berth__attention_kv_head(a, head);
  attention_block b = {.batch = item / tiles / a->q.heads, .head = head, .row = tile * WIDTH};
  b.keys = berth__attention_keys(a, b.batch);
  b.n_rows = attention_smaller(WIDTH, a->q.length - b.row);
  b.vectors = b.n_rows > VF_LANES ? 2 : 1;
  b.k = berth__heads_at(&a->k, b.batch, kv_head, 0);
  b.v = berth__heads_at(&a->v, b.batch, kv_head, 0);
  if (!does_rows(a)) return attend_tile(j, &b, err);
  b.n_rows = 1;
  for (; b.row < a->q.length; b.row++) BERTH__TRY(attention_row_attend(j, &b, err));
  return BERTH_OK;
}

static berth_status attention_kernel_run(const berth_op_call *call, berth_error *err) {
  attention_job j = {0};
  attention_kernel_describe(call, &j);
  BERTH__TRY(berth__attention_check(&j.a, err));
  for (int64_t item = call->begin; item < call->end; item++) BERTH__TRY(attention_kernel_run_item(&j, item, err));
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_attention)[] = {
    {"attention blocked", BERTH__OP_attention, attention_kernel_takes, attention_kernel_items, attention_kernel_grain,
     attention_kernel_scratch, attention_kernel_run, NULL, false, NULL},
    {0},
};
