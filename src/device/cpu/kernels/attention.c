/* attention: blocks of keys go by with a running maximum and sum, so the scores of a block are all there ever is.
 *
 * Queries lie side by side in the lanes of vectors (a tile of WIDTH of them), keys one below the other. Both products
 * then broadcast elements of k and v where these lie, whatever their strides, and everything that a softmax does is
 * done between whole vectors. Few queries (decoding) are done one by one, along the rows of k and v.
 *
 * What is not f32 becomes so block by block: queries and biases as they are turned, keys and values in scratch. For few
 * queries keys and values of f16 and q8_0 are read where they lie.
 *
 * Results that are not finite are left to the reference kernel, which knows what may not be seen. */
#include <float.h>

#include "device/cpu/kernels/attention_blocks.h"
#include "device/cpu/kernels/chain_steps.h"
#include "device/cpu/kernels/vec_math.h"
#include "ops/attention.h"

#define WIDTH VF_PANEL
#define KEYS 64
#define FEW 4 /* queries of a head that are not worth a tile */
#if VF_LANES == 16
#define ROWS 8 /* sums of a tile that stay in registers: ROWS times WIDTH */
#define FEW_ROWS 4
#elif VF_LANES == 8
#define ROWS 6
#define FEW_ROWS 4 /* fewer would wait for each other */
#else
#define ROWS 4
#define FEW_ROWS 2
#endif
#define UNROLL _Pragma("GCC unroll 16")

typedef struct job {
  berth__attention a;
  berth_type type;    /* of q, the bias and the result */
  berth_type kv_type; /* of k and v */
  const char *q, *k, *v;
  char *out;
  int64_t element, kv_element; /* bytes; 0 for keys and values in blocks */
  float *query;                /* [D][WIDTH], scaled */
  float *score;                /* [KEYS][WIDTH], weights later */
  float *beside;               /* [KEYS][WIDTH], or one a key: what is added to the scores */
  float *sum;                  /* [Dv][WIDTH] */
  float *most, *total;         /* [WIDTH]: largest score so far; sum of the weights */
  float *first, *last;         /* [WIDTH]: the keys that a query sees, from the block's first and last on */
  float *wide;                 /* [KEYS][D or Dv]: a block of keys or values that are not f32 */
  bool has_beside, has_beside_rows;
  bool reads_blocks; /* one query at a time, along rows of q8_0 */
  bool reads_halves; /* the same along rows of f16, which become f32 in registers */
} job;

/* Queries [row, row + n_rows) of a head; keys [first, last) are those that any of them sees. */
typedef struct block {
  int64_t batch, head, row, n_rows, first, last;
  int64_t keys; /* that there are in this run */
  int64_t k, v; /* where key 0 and its value begin, in elements */
  int vectors;  /* of the tile that are in use */
} block;

static inline int64_t attention_kernel_smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Rows [key, key + n) of keys or values as f32, and how far apart their rows and elements are. */
typedef struct wide_rows {
  const float *at;
  int64_t row, step;
} wide_rows;

static wide_rows rows_of(const job *j, const char *data, int64_t at, const berth__heads *h, int64_t key, int64_t n) {
  if (n > 0) at += berth__attention_place(&j->a, key) * h->row_stride; /* a ring without rows has no place */
  if (j->kv_type == BERTH_F32) return (wide_rows){(const float *)(const void *)data + at, h->row_stride, h->stride};
  for (int64_t i = 0; i < n; i++, at += h->row_stride)
    if (j->kv_element != 0)
      chain_load(j->wide + i * h->size, j->kv_type, data + at * j->kv_element, h->stride, h->size);
    else
      attention_unpack(j->kv_type, data, at, h->size, j->wide + i * h->size);
  return (wide_rows){j->wide, h->size, 1};
}

/* exp(x) for x <= 0, NaN for NaN; 0 where that is below the normal numbers. */
static inline vf exp_down(vf x) {
  const vf rounder = vf_set1(12582912.0f); /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
  x = vf_max(vf_set1(-88.0f), x);
  const vf shifted = vf_fma(x, vf_set1(1.44269504f), rounder), n = shifted - rounder;
  const vf r = vf_fnma(n, vf_set1(0.693147181f), x);
  vf p = vf_set1(0.00829761941f);
  p = vf_fma(p, r, vf_set1(0.0419156291f));
  p = vf_fma(p, r, vf_set1(0.166675761f));
  p = vf_fma(p, r, vf_set1(0.499988914f));
  p = vf_fma(p, r, vf_set1(0.999999702f));
  p = vf_fma(p, r, vf_set1(1.0f)); /* exp(0) is 1: equal scores give equal weights */
  const vi power = vi_add(vi_shift_left(vf_bits(shifted), 23), vi_set1(127 << 23)); /* 2^n; 0 for n = -127 */
  return p * vf_from_bits(power);
}

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
  /* Two tiles of few rows rather than a whole one and a rest that is fewer still. */
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

/* The queries as columns, lanes without one as 0. */
static void load_queries(const job *j, const block *b) {
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

static void store_vector(const job *j, char *to, vf x, int64_t n) {
  float line[VF_LANES];
  if (j->type == BERTH_F32) {
    vf_store_n((float *)(void *)to, x, n);
    return;
  }
  vf_store(line, x);
  chain_store(to, j->type, line, n);
}

static float sink_weight(const job *j, int64_t head, float most) {
  const berth_tensor *sinks = j->a.sinks;
  const int64_t at = head * sinks->stride[0] * (int64_t)berth_type_size(sinks->type);
  float sink;
  chain_load(&sink, sinks->type, (const char *)sinks->data + at, 1, 1);
  return expf(sink - most);
}

/* The total of a query's weights, with that of its head's sink. A query that sees nothing has none. */
static vf attention_kernel_with_sink(const job *j, int64_t head, vf total, int64_t lane) {
  float more[VF_LANES];
  if (j->a.sinks == NULL) return total;
  for (int64_t i = 0; i < VF_LANES; i++)
    more[i] = j->total[lane + i] != 0 ? sink_weight(j, head, j->most[lane + i]) : 0;
  return total + vf_load(more);
}

static void store_results(const job *j, const block *b) {
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

static bool is_finite(const job *j, const block *b) {
  vf probe = vf_zero();
  for (int64_t lane = 0; lane < b->vectors * VF_LANES; lane += VF_LANES) {
    probe = probe + vf_load(j->total + lane) * vf_zero();
    for (int64_t d = 0; d < j->a.v.size; d++) probe = vf_fma(vf_load(j->sum + d * WIDTH + lane), vf_zero(), probe);
  }
  return vf_sum(probe) == 0;
}

/* ---- Masks and biases ---- */

static float attention_kernel_beside_at(const berth__attention *a, int64_t batch, int64_t head, int64_t row,
                                        int64_t key) {
  const int64_t *m = a->mask_stride, *s = a->bias_stride;
  if (a->mask != NULL && !((const uint8_t *)a->mask->data)[batch * m[0] + head * m[1] + row * m[2] + key * m[3]])
    return -INFINITY;
  if (a->bias == NULL) return 0;
  const int64_t at = batch * s[0] + head * s[1] + row * s[2] + key * s[3];
  if (a->bias->type == BERTH_F32) return ((const float *)a->bias->data)[at];
  float value;
  chain_load(&value, a->bias->type, (const uint16_t *)a->bias->data + at, 1, 1);
  return value;
}

/* A bias by query and key without a mask, keys beside each other: turned a square at a time. */
static void turn_bias(const job *j, const block *b, int64_t key, int64_t n) {
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

/* A bias by key alone: all at once. */
static void load_bias_keys(const job *j, const block *b, int64_t key, int64_t n) {
  const int64_t *s = j->a.bias_stride, at = b->batch * s[0] + b->head * s[1] + key * s[3];
  const berth_type type = j->a.bias->type;
  chain_load(j->beside, type, (const char *)j->a.bias->data + at * (int64_t)berth_type_size(type), s[3], n);
}

static void load_beside(const job *j, const block *b, int64_t key, int64_t n) {
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
    j->beside[i] = attention_kernel_beside_at(&j->a, b->batch, b->head, b->row, key + i);
  for (int64_t lane = 0; lane < b->n_rows && j->has_beside_rows; lane++)
    for (int64_t i = 0; i < n; i++)
      j->beside[i * WIDTH + lane] = attention_kernel_beside_at(&j->a, b->batch, b->head, b->row + lane, key + i);
}

/* ---- Softmax ---- */

/* Adds what stands beside the scores of keys [key, key + n) and hides those past the edges; gives the largest. Edges
 * are few keys from those of the block: told from there, they are exact in f32 wherever a ring has come to, and so is
 * the order of whatever is further away. */
static vf attention_kernel_mend(const job *j, const block *b, int64_t key, int64_t n, int64_t lane) {
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

/* Scores become weights; sums that were taken with another maximum are brought to this one. */
static void attention_kernel_weigh(const job *j, const block *b, int64_t key, int64_t n) {
  for (int64_t lane = 0; lane < b->vectors * VF_LANES; lane += VF_LANES) {
    const vf before = vf_load(j->most + lane), most = attention_kernel_mend(j, b, key, n, lane);
    const vf factor = exp_down(before - most);
    vf total = vf_load(j->total + lane) * factor;
    for (int64_t i = 0; i < n; i++) {
      const vf weight = exp_down(vf_load(j->score + i * WIDTH + lane) - most);
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

static void start_block(const job *j, block *b) {
  int64_t first, last;
  berth__attention_range(&j->a, b->keys, b->row, &b->first, &last);
  berth__attention_range(&j->a, b->keys, b->row + b->n_rows - 1, &first, &b->last);
  for (int64_t lane = 0; lane < WIDTH; lane++) {
    berth__attention_range(&j->a, b->keys, b->row + attention_kernel_smaller(lane, b->n_rows - 1), &first, &last);
    j->first[lane] = (float)(first - b->first);
    j->last[lane] = (float)(last - b->last);
    j->most[lane] = -FLT_MAX;
    j->total[lane] = 0;
  }
  memset(j->sum, 0, (size_t)(j->a.v.size * WIDTH) * sizeof *j->sum);
  if (j->has_beside_rows) memset(j->beside, 0, KEYS * WIDTH * sizeof *j->beside);
}

/* The same queries with the reference kernel, whose items are queries. */
static berth_status attention_kernel_leave(const job *j, const block *b, berth_error *err) {
  berth_op_call call = *j->a.call;
  call.begin = (b->batch * j->a.q.heads + b->head) * j->a.q.length + b->row;
  call.end = call.begin + b->n_rows;
  return ((const berth__op *)call.user)->family->kernel(&call, err);
}

static berth_status attend_tile(const job *j, block *b, berth_error *err) {
  start_block(j, b);
  load_queries(j, b);
  for (int64_t key = b->first, n; key < b->last; key += n) {
    n = berth__attention_run(&j->a, key, attention_kernel_smaller(KEYS, b->last - key));
    load_beside(j, b, key, n);
    const wide_rows k = rows_of(j, j->k, b->k, &j->a.k, key, n);
    attention_kernel_multiply(k.at, k.row, k.step, j->query, j->a.q.size, j->score, false, n, b->vectors);
    attention_kernel_weigh(j, b, key, n);
    const wide_rows v = rows_of(j, j->v, b->v, &j->a.v, key, n);
    attention_kernel_multiply(v.at, v.step, v.row, j->score, n, j->sum, true, j->a.v.size, b->vectors);
  }
  if (!is_finite(j, b)) return attention_kernel_leave(j, b, err);
  store_results(j, b);
  return BERTH_OK;
}

/* ---- One query ---- */

#define AT_ONCE 4 /* keys, or vectors of a row of v */

/* Rows of keys or values: of f32, or of f16, whose sizes are whole vectors. */
static inline __attribute__((always_inline)) vf attention_load(const void *row, int64_t at, int64_t n,
                                                               const bool is_half) {
  if (is_half) return vf_load_f16((const uint16_t *)row + at);
  const float *x = (const float *)row + at;
  return n == VF_LANES ? vf_load(x) : vf_load_n(x, n);
}

static inline const void *attention_row(const void *rows, int64_t at, const bool is_half) {
  return is_half ? (const void *)((const uint16_t *)rows + at) : (const void *)((const float *)rows + at);
}

/* The scores of n keys that lie one below the other. */
static inline __attribute__((always_inline)) void score_keys(const job *j, const void *keys, int64_t stride, int64_t n,
                                                             float *score, const bool is_half) {
  const int64_t size = j->a.q.size;
  int64_t key = 0;
  for (; key + AT_ONCE <= n; key += AT_ONCE) {
    vf sum[AT_ONCE];
    const void *k = attention_row(keys, key * stride, is_half);
    UNROLL for (int i = 0; i < AT_ONCE; i++) sum[i] = vf_zero();
    for (int64_t d = 0; d < size; d += VF_LANES) {
      const int64_t tail = vf_tail(size - d);
      const vf query = tail == VF_LANES ? vf_load(j->query + d) : vf_load_n(j->query + d, tail);
      UNROLL for (int i = 0; i < AT_ONCE; i++) sum[i] =
          vf_fma(query, attention_load(k, i * stride + d, tail, is_half), sum[i]);
    }
    UNROLL for (int i = 0; i < AT_ONCE; i++) score[key + i] = vf_sum(sum[i]);
  }
  for (; key < n; key++) {
    vf sum = vf_zero();
    for (int64_t d = 0; d < size; d += VF_LANES) {
      const int64_t tail = vf_tail(size - d);
      sum = vf_fma(vf_load_n(j->query + d, tail), attention_load(keys, key * stride + d, tail, is_half), sum);
    }
    score[key] = vf_sum(sum);
  }
}

/* Keys from this one on that are done at once: those that become f32 do so a block at a time. */
static int64_t keys_at_once(const job *j, const block *b, int64_t key) {
  const bool is_plain = j->kv_type == BERTH_F32 || j->reads_blocks || j->reads_halves;
  return berth__attention_run(&j->a, key, is_plain ? b->last - key : attention_kernel_smaller(KEYS, b->last - key));
}

static void score_row(const job *j, const block *b) {
  const char *q = j->q + berth__heads_at(&j->a.q, b->batch, b->head, b->row) * j->element;
  chain_load(j->query, j->type, q, j->a.q.stride, j->a.q.size);
  for (int64_t d = 0; d < j->a.q.size; d++) j->query[d] *= (float)j->a.scale;
  for (int64_t key = b->first, n; key < b->last; key += n) {
    n = keys_at_once(j, b, key);
    float *score = j->score + (key - b->first);
    if (j->reads_blocks) {
      const uint8_t *k = q8_at(j->k, b->k, &j->a.k, berth__attention_place(&j->a, key));
      q8_score_all(j->query, j->a.q.size, k, q8_row_bytes(&j->a.k), n, score);
      continue;
    }
    if (j->reads_halves) {
      const int64_t at = b->k + berth__attention_place(&j->a, key) * j->a.k.row_stride;
      score_keys(j, (const uint16_t *)(const void *)j->k + at, j->a.k.row_stride, n, score, true);
      continue;
    }
    const wide_rows k = rows_of(j, j->k, b->k, &j->a.k, key, n);
    score_keys(j, k.at, k.row, n, score, false);
  }
  const vf cap = vf_set1((float)j->a.cap), inverse = vf_set1((float)(1 / j->a.cap));
  for (int64_t i = 0, n = b->last - b->first; i < n && j->a.cap != 0; i += VF_LANES) {
    const vf x = vf_load_n(j->score + i, vf_tail(n - i));
    vf_store_n(j->score + i, vf_tanh(x * inverse) * cap, vf_tail(n - i));
  }
  for (int64_t key = b->first; key < b->last && j->has_beside; key++)
    j->score[key - b->first] += attention_kernel_beside_at(&j->a, b->batch, b->head, b->row, key);
}

/* Scores of n keys become weights; gives their sum, and the largest score. */
static float weigh_row(float *score, int64_t n, float *most_of_all) {
  vf most = vf_set1(-FLT_MAX), total = vf_zero();
  const int64_t whole = n - n % VF_LANES;
  for (int64_t i = 0; i < whole; i += VF_LANES) most = vf_max(most, vf_load(score + i));
  float largest = vf_most(most);
  for (int64_t i = whole; i < n; i++) largest = score[i] > largest ? score[i] : largest;
  *most_of_all = largest;
  for (int64_t i = 0; i < n; i += VF_LANES) {
    vf_store_n(score + i, exp_down(vf_load_n(score + i, vf_tail(n - i)) - vf_set1(largest)), vf_tail(n - i));
    total = total + vf_load_n(score + i, vf_tail(n - i));
  }
  return vf_sum(total);
}

/* Columns [d, d + columns) of the result, at most AT_ONCE vectors, for keys whose values are v; gives something times
 * 0. Sums go on from those of the keys before. */
typedef struct weighed {
  const float *score;
  const void *v;
  int64_t row, keys;
  bool is_first;
  float factor;
} weighed;

static inline __attribute__((always_inline)) vf sum_columns(const weighed *w, int64_t d, int64_t columns, float *out,
                                                            const int vectors, const bool is_half) {
  vf sum[AT_ONCE], probe = vf_zero();
  int64_t at = d;
  const int64_t n = columns - (vectors - 1) * VF_LANES; /* of the last vector */
  const vf factor = vf_set1(w->factor);
  UNROLL for (int i = 0; i < vectors; i++) sum[i] =
      w->is_first ? vf_zero() : vf_load_n(out + d + i * VF_LANES, i < vectors - 1 ? VF_LANES : n);
  for (int64_t key = 0; key < w->keys; key++, at += w->row) {
    const vf weight = vf_set1(w->score[key]);
    UNROLL for (int i = 0; i < vectors; i++) sum[i] =
        vf_fma(weight, attention_load(w->v, at + i * VF_LANES, i < vectors - 1 ? VF_LANES : n, is_half), sum[i]);
  }
  UNROLL for (int i = 0; i < vectors; i++) {
    vf_store_n(out + d + i * VF_LANES, sum[i] * factor, i < vectors - 1 ? VF_LANES : n);
    probe = vf_fma(sum[i], vf_zero(), probe);
  }
  return probe;
}

static inline __attribute__((always_inline)) vf sum_all_columns(const weighed *w, int64_t size, float *out,
                                                                const bool is_half) {
  vf probe = vf_zero();
  for (int64_t d = 0; d < size; d += AT_ONCE * VF_LANES) {
    const int64_t columns = attention_kernel_smaller(size - d, AT_ONCE * VF_LANES);
    switch ((columns + VF_LANES - 1) / VF_LANES) {
      case 1: probe = probe + sum_columns(w, d, columns, out, 1, is_half); break;
      case 2: probe = probe + sum_columns(w, d, columns, out, 2, is_half); break;
      case 3: probe = probe + sum_columns(w, d, columns, out, 3, is_half); break;
      default: probe = probe + sum_columns(w, d, columns, out, 4, is_half); break;
    }
  }
  return probe;
}

/* The values of keys [first, last) by their weights; gives something times 0. */
static vf sum_values(const job *j, const block *b, float factor, float *out) {
  vf probe = vf_zero();
  int64_t key = b->first, n;
  do { /* once without any key, too */
    n = key < b->last ? keys_at_once(j, b, key) : 0;
    const bool is_first = key == b->first, is_last = key + n >= b->last;
    const float *score = j->score + (key - b->first), by = is_last ? factor : 1.0f;
    if (j->reads_blocks) {
      const uint8_t *v = q8_at(j->v, b->v, &j->a.v, n != 0 ? berth__attention_place(&j->a, key) : 0);
      probe = probe + q8_sum(score, n, v, q8_row_bytes(&j->a.v), j->a.v.size, is_first, by, out);
    } else if (j->reads_halves) {
      const int64_t at = b->v + (n != 0 ? berth__attention_place(&j->a, key) : 0) * j->a.v.row_stride;
      const weighed w = {score, (const uint16_t *)(const void *)j->v + at, j->a.v.row_stride, n, is_first, by};
      probe = probe + sum_all_columns(&w, j->a.v.size, out, true);
    } else {
      const wide_rows v = rows_of(j, j->v, b->v, &j->a.v, key, n);
      const weighed w = {score, v.at, v.row, n, is_first, by};
      probe = probe + sum_all_columns(&w, j->a.v.size, out, false);
    }
    key += n;
  } while (key < b->last);
  return probe;
}

static berth_status attend_row(const job *j, block *b, berth_error *err) {
  char *to = j->out + berth__heads_at(&j->a.out, b->batch, b->head, b->row) * j->element;
  float *out = j->type == BERTH_F32 ? (float *)(void *)to : j->sum;
  berth__attention_range(&j->a, b->keys, b->row, &b->first, &b->last);
  if (b->last < b->first) b->last = b->first;
  score_row(j, b);
  float most, total = weigh_row(j->score, b->last - b->first, &most);
  if (j->a.sinks != NULL && total != 0) total += sink_weight(j, b->head, most);
  const float factor = total != 0 ? 1 / total : 0;
  const vf probe = sum_values(j, b, factor, out) + vf_set1(total * 0);
  if (j->type != BERTH_F32) chain_store(to, j->type, out, j->a.v.size);
  return vf_sum(probe) == 0 ? BERTH_OK : attention_kernel_leave(j, b, err);
}

/* ---- The calls ---- */

static bool does_rows(const berth__attention *a) { return a->q.length <= FEW && a->k.stride == 1 && a->v.stride == 1; }

static bool attention_kernel_takes(const berth_op_call *call) {
  const berth_type cache = call->in[BERTH__ATTENTION_K].type;
  if (berth__type_is_block(cache) && blocks_split_of(cache) == NULL) return false;
  return call->out[0].type != BERTH_F64 && cache != BERTH_F64;
}

/* Items are tiles of queries, or heads where there are few queries. */
static int64_t attention_kernel_tiles_of(const berth__attention *a) {
  return does_rows(a) ? 1 : a->q.length / WIDTH + (a->q.length % WIDTH != 0);
}

static int64_t attention_kernel_items(const berth_op_call *call) {
  berth__attention a;
  berth__attention_of(call, &a);
  return a.q.batch * a.q.heads * attention_kernel_tiles_of(&a);
}

/* Multiplications that are worth a thread. */
#define WORTH 400000

static int64_t attention_kernel_grain(const berth_op_call *call) {
  berth__attention a;
  berth__attention_of(call, &a);
  const int64_t rows = attention_kernel_smaller(a.q.length, does_rows(&a) ? FEW : WIDTH);
  return WORTH / (rows * a.k.length * (a.q.size + a.v.size + 16) + 1) + 1;
}

static uint64_t floats_of(const berth__attention *a) {
  const int64_t size = a->q.size, rows = a->q.size + VF_LANES + a->k.length, edges = 4 * WIDTH;
  return (uint64_t)(does_rows(a) ? rows : (size + a->v.size + 2 * KEYS) * WIDTH + edges);
}

/* Of keys and values that are not f32: a block of them; and where there are few queries, the sums of one. */
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

static void attention_kernel_describe(const berth_op_call *call, job *j) {
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
  j->reads_halves = j->kv_type == BERTH_F16 && does_rows(a) && a->k.size % VF_LANES == 0 && a->v.size % VF_LANES == 0;
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

static berth_status attention_kernel_run_item(const job *j, int64_t item, berth_error *err) {
  const berth__attention *a = &j->a;
  const int64_t tiles = attention_kernel_tiles_of(a), tile = item % tiles, head = item / tiles % a->q.heads;
  const int64_t kv_head = berth__attention_kv_head(a, head);
  block b = {.batch = item / tiles / a->q.heads, .head = head, .row = tile * WIDTH};
  b.keys = berth__attention_keys(a, b.batch);
  b.n_rows = attention_kernel_smaller(WIDTH, a->q.length - b.row);
  b.vectors = b.n_rows > VF_LANES ? 2 : 1;
  b.k = berth__heads_at(&a->k, b.batch, kv_head, 0);
  b.v = berth__heads_at(&a->v, b.batch, kv_head, 0);
  if (!does_rows(a)) return attend_tile(j, &b, err);
  b.n_rows = 1;
  for (; b.row < a->q.length; b.row++) BERTH__TRY(attend_row(j, &b, err));
  return BERTH_OK;
}

static berth_status attention_kernel_run(const berth_op_call *call, berth_error *err) {
  job j = {0};
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
