/* attention of one query at a time, along the rows of k and v, for decoding. Keys and values of f16 and q8_0 are read
 * in place; others are converted to f32 in scratch, a block of keys at a time. */
#include "device/cpu/kernels/attention_job.h"

#define AT_ONCE 4 /* keys, or vectors of a row of v, processed together */

/* Loads from rows of keys or values of f32 or f16. */
static inline __attribute__((always_inline)) vf attention_load(const void *row, int64_t at, int64_t n,
                                                               const bool is_half) {
  if (is_half) {
    const uint16_t *halves = (const uint16_t *)row + at;
    return n == VF_LANES ? vf_load_f16(halves) : vf_load_f16_n(halves, n);
  }
  const float *x = (const float *)row + at;
  return n == VF_LANES ? vf_load(x) : vf_load_n(x, n);
}

static inline const void *attention_row(const void *rows, int64_t at, const bool is_half) {
  return is_half ? (const void *)((const uint16_t *)rows + at) : (const void *)((const float *)rows + at);
}

/* The scores of n keys that lie one below the other. */
static inline __attribute__((always_inline)) void score_keys(const attention_job *j, const void *keys, int64_t stride,
                                                             int64_t n, float *score, const bool is_half) {
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

/* The number of keys, from this one on, that are processed together: converted types go block by block. */
static int64_t keys_at_once(const attention_job *j, const attention_block *b, int64_t key) {
  const bool is_plain = j->kv_type == BERTH_F32 || j->reads_blocks || j->reads_halves;
  return berth__attention_run(&j->a, key, is_plain ? b->last - key : attention_smaller(KEYS, b->last - key));
}

static void score_row(const attention_job *j, const attention_block *b) {
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
    const attention_wide k = attention_rows(j, j->k, b->k, &j->a.k, key, n);
    score_keys(j, k.at, k.row, n, score, false);
  }
  const vf cap = vf_set1((float)j->a.cap), inverse = vf_set1((float)(1 / j->a.cap));
  for (int64_t i = 0, n = b->last - b->first; i < n && j->a.cap != 0; i += VF_LANES) {
    const vf x = vf_load_n(j->score + i, vf_tail(n - i));
    vf_store_n(j->score + i, vf_tanh(x * inverse) * cap, vf_tail(n - i));
  }
  for (int64_t key = b->first; key < b->last && j->has_beside; key++)
    j->score[key - b->first] += attention_beside_at(&j->a, b->batch, b->head, b->row, key);
}

/* Turns the scores of n keys into weights; returns their sum, and the largest score. */
static float weigh_row(float *score, int64_t n, float *most_of_all) {
  vf most = vf_set1(-FLT_MAX), total = vf_zero();
  const int64_t whole = n - n % VF_LANES;
  for (int64_t i = 0; i < whole; i += VF_LANES) most = vf_max(most, vf_load(score + i));
  float largest = vf_most(most);
  for (int64_t i = whole; i < n; i++) largest = score[i] > largest ? score[i] : largest;
  *most_of_all = largest;
  for (int64_t i = 0; i < n; i += VF_LANES) {
    vf_store_n(score + i, attention_exp(vf_load_n(score + i, vf_tail(n - i)) - vf_set1(largest)), vf_tail(n - i));
    total = total + vf_load_n(score + i, vf_tail(n - i));
  }
  return vf_sum(total);
}

/* Columns [d, d + columns) of the result, at most AT_ONCE vectors, for keys whose values are v; adds to the sums of
 * earlier keys. Returns the sums times 0, to detect values that are not finite. */
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
    const int64_t columns = attention_smaller(size - d, AT_ONCE * VF_LANES);
    switch ((columns + VF_LANES - 1) / VF_LANES) {
      case 1: probe = probe + sum_columns(w, d, columns, out, 1, is_half); break;
      case 2: probe = probe + sum_columns(w, d, columns, out, 2, is_half); break;
      case 3: probe = probe + sum_columns(w, d, columns, out, 3, is_half); break;
      default: probe = probe + sum_columns(w, d, columns, out, 4, is_half); break;
    }
  }
  return probe;
}

/* Adds the weighted values of keys [first, last). Returns the sums times 0. */
static vf sum_values(const attention_job *j, const attention_block *b, float factor, float *out) {
  vf probe = vf_zero();
  int64_t key = b->first, n;
  do { /* at least once, even without keys */
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
      const attention_wide v = attention_rows(j, j->v, b->v, &j->a.v, key, n);
      const weighed w = {score, v.at, v.row, n, is_first, by};
      probe = probe + sum_all_columns(&w, j->a.v.size, out, false);
    }
    key += n;
  } while (key < b->last);
  return probe;
}

berth_status attention_row_attend(const attention_job *j, attention_block *b, berth_error *err) {
  char *to = j->out + berth__heads_at(&j->a.out, b->batch, b->head, b->row) * j->element;
  float *out = j->type == BERTH_F32 ? (float *)(void *)to : j->sum;
  berth__attention_range(&j->a, b->keys, b->row, &b->first, &b->last);
  if (b->last < b->first) b->last = b->first;
  score_row(j, b);
  float most, total = weigh_row(j->score, b->last - b->first, &most);
  if (j->a.sinks != NULL && total != 0) total += attention_sink(j, b->head, most);
  const float factor = total != 0 ? 1 / total : 0;
  const vf probe = sum_values(j, b, factor, out) + vf_set1(total * 0);
  if (j->type != BERTH_F32) chain_store(to, j->type, out, j->a.v.size);
  return vf_sum(probe) == 0 ? BERTH_OK : attention_leave(j, b, err);
}
