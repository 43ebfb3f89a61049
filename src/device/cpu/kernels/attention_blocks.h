/* Keys and values in blocks, for attention.c: some rows of any block type converted to f32, and for single queries,
 * rows of q8_0 that are read in place. */
#ifndef BERTH_DEVICE_CPU_KERNELS_ATTENTION_BLOCKS_H
#define BERTH_DEVICE_CPU_KERNELS_ATTENTION_BLOCKS_H

#include "base/blocks_split.h"
#include "base/storage.h"
#include "device/cpu/kernels/blocks.h"
#include "device/cpu/kernels/vec.h"
#include "ops/heads.h"

#define Q8_ELEMENTS 32
#define Q8_BYTES 34
#define Q8_VECTORS (Q8_ELEMENTS / VF_LANES)
#define Q8_UNROLL _Pragma("GCC unroll 16")

/* Elements [at, at + n) of a tensor in blocks; they need not begin or end at a block boundary. */
static inline void attention_unpack(berth_type type, const char *data, int64_t at, int64_t n, float *to) {
  const berth_storage storage = berth_type_storage(type);
  const blocks_split split = blocks_split_of(type);
  const int64_t elements = storage.elements, group = (int64_t)berth__block_group(type);
  berth__block_parts p;
  for (int g = 0; g < BERTH__BLOCK_GROUPS_MAX; g++) p.offset[g] = -0.0f;
  for (int64_t i = 0; i < n;) {
    const int64_t lane = (at + i) % elements, rest = elements - lane, end = i + (n - i < rest ? n - i : rest);
    split((const uint8_t *)data + (at + i) / elements * storage.bytes, &p);
    for (int64_t from = lane - i; i < end; i++) {
      const int64_t g = (i + from) / group;
      to[i] = p.factor[g] * (float)p.q[i + from] + p.offset[g];
    }
  }
}

/* Bytes of a row of heads, and the address of row `key` of a head whose row 0 begins at element `at`. */
static inline int64_t q8_row_bytes(const berth__heads *h) { return h->row_stride / Q8_ELEMENTS * Q8_BYTES; }

static inline const uint8_t *q8_at(const char *data, int64_t at, const berth__heads *h, int64_t key) {
  return (const uint8_t *)data + (at + key * h->row_stride) / Q8_ELEMENTS * Q8_BYTES;
}

static inline vf q8_vector(const uint8_t *block, int i) {
  return vf_from_int(vi_load_i8_n(block + 2 + i * VF_LANES, VF_LANES));
}

/* The dot products of a query with `keys` rows that are `row` bytes apart; `size` is a multiple of the block size. */
static inline __attribute__((always_inline)) void q8_score(const float *query, int64_t size, const uint8_t *k,
                                                           int64_t row, float *score, const int keys) {
  vf sum[4];
  Q8_UNROLL for (int i = 0; i < keys; i++) sum[i] = vf_zero();
  for (int64_t d = 0; d < size; d += Q8_ELEMENTS, k += Q8_BYTES) {
    vf part[4];
    Q8_UNROLL for (int i = 0; i < keys; i++) part[i] = vf_load(query + d) * q8_vector(k + i * row, 0);
    Q8_UNROLL for (int v = 1; v < Q8_VECTORS; v++) Q8_UNROLL for (int i = 0; i < keys; i++) part[i] =
        vf_fma(vf_load(query + d + v * VF_LANES), q8_vector(k + i * row, v), part[i]);
    Q8_UNROLL for (int i = 0; i < keys; i++) sum[i] = vf_fma(part[i], vf_set1(blocks_f16(k + i * row)), sum[i]);
  }
  Q8_UNROLL for (int i = 0; i < keys; i++) score[i] = vf_sum(sum[i]);
}

static inline void q8_score_all(const float *query, int64_t size, const uint8_t *k, int64_t row, int64_t keys,
                                float *score) {
  int64_t key = 0;
  for (; key + 4 <= keys; key += 4) q8_score(query, size, k + key * row, row, score + key, 4);
  for (; key < keys; key++) q8_score(query, size, k + key * row, row, score + key, 1);
}

/* out = factor * (out + the sum over keys of weight[key] * row `key` of v), for `size` columns, a multiple of the block
 * size; the first keys do not read `out`. Returns the sums times 0, to detect values that are not finite. */
static inline vf q8_sum(const float *weight, int64_t keys, const uint8_t *v, int64_t row, int64_t size, bool is_first,
                        float factor, float *out) {
  vf probe = vf_zero();
  for (int64_t d = 0; d < size; d += Q8_ELEMENTS, v += Q8_BYTES) {
    vf sum[Q8_VECTORS];
    const uint8_t *block = v;
    Q8_UNROLL for (int i = 0; i < Q8_VECTORS; i++) sum[i] = is_first ? vf_zero() : vf_load(out + d + i * VF_LANES);
    for (int64_t key = 0; key < keys; key++, block += row) {
      const vf by = vf_set1(weight[key] * blocks_f16(block));
      Q8_UNROLL for (int i = 0; i < Q8_VECTORS; i++) sum[i] = vf_fma(by, q8_vector(block, i), sum[i]);
    }
    Q8_UNROLL for (int i = 0; i < Q8_VECTORS; i++) {
      vf_store(out + d + i * VF_LANES, sum[i] * vf_set1(factor));
      probe = vf_fma(sum[i], vf_zero(), probe);
    }
  }
  return probe;
}

#endif
