/* What the attention kernels share: a call in their terms, and the steps that both forms have. Many queries of a head
 * are computed in tiles (attention.c), few of them one by one (attention_row.c). */
#ifndef BERTH_DEVICE_CPU_KERNELS_ATTENTION_JOB_H
#define BERTH_DEVICE_CPU_KERNELS_ATTENTION_JOB_H

#include <float.h>

#include "device/cpu/kernels/attention_blocks.h"
#include "device/cpu/kernels/chain_steps.h"
#include "device/cpu/kernels/vec_math.h"
#include "ops/attention.h"

#define WIDTH VF_PANEL
#define KEYS 64
#define UNROLL _Pragma("GCC unroll 16")

typedef struct attention_job {
  berth__attention a;
  berth_type type;    /* of q, the bias and the result */
  berth_type kv_type; /* of k and v */
  const char *q, *k, *v;
  char *out;
  int64_t element, kv_element; /* bytes per element; 0 for keys and values in blocks */
  float *query;                /* [D][WIDTH], scaled */
  float *score;                /* [KEYS][WIDTH], overwritten by the weights */
  float *beside;               /* [KEYS][WIDTH], or one per key: what is added to the scores */
  float *sum;                  /* [Dv][WIDTH] */
  float *most, *total;         /* [WIDTH]: largest score so far; sum of the weights so far */
  float *first, *last;         /* [WIDTH]: the range of keys that a query sees, relative to the block */
  float *wide;                 /* [KEYS][D or Dv]: a block of keys or values that are not f32 */
  bool has_beside, has_beside_rows;
  bool reads_blocks; /* one query at a time, reading rows of q8_0 in place */
  bool reads_halves; /* the same for rows of f16, converted in registers */
} attention_job;

/* Queries [row, row + n_rows) of a head; at least one of them sees keys [first, last). */
typedef struct attention_block {
  int64_t batch, head, row, n_rows, first, last;
  int64_t keys; /* number of keys in this run */
  int64_t k, v; /* where key 0 and value 0 begin, in elements */
  int vectors;  /* vectors of the tile in use */
} attention_block;

static inline int64_t attention_smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Rows [key, key + n) of keys or values as f32, with the strides of rows and elements. */
typedef struct attention_wide {
  const float *at;
  int64_t row, step;
} attention_wide;

static inline attention_wide attention_rows(const attention_job *j, const char *data, int64_t at, const berth__heads *h,
                                            int64_t key, int64_t n) {
  if (n > 0) at += berth__attention_place(&j->a, key) * h->row_stride; /* an empty ring has no address */
  if (j->kv_type == BERTH_F32)
    return (attention_wide){(const float *)(const void *)data + at, h->row_stride, h->stride};
  for (int64_t i = 0; i < n; i++, at += h->row_stride)
    if (j->kv_element != 0)
      chain_load(j->wide + i * h->size, j->kv_type, data + at * j->kv_element, h->stride, h->size);
    else
      attention_unpack(j->kv_type, data, at, h->size, j->wide + i * h->size);
  return (attention_wide){j->wide, h->size, 1};
}

/* exp(x) for x <= 0; NaN for NaN; 0 instead of subnormal results. */
static inline vf attention_exp(vf x) {
  const vf rounder = vf_set1(12582912.0f); /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
  x = vf_max(vf_set1(-88.0f), x);
  const vf shifted = vf_fma(x, vf_set1(1.44269504f), rounder), n = shifted - rounder;
  const vf r = vf_fnma(n, vf_set1(0.693147181f), x);
  vf p = vf_set1(0.00829761941f);
  p = vf_fma(p, r, vf_set1(0.0419156291f));
  p = vf_fma(p, r, vf_set1(0.166675761f));
  p = vf_fma(p, r, vf_set1(0.499988914f));
  p = vf_fma(p, r, vf_set1(0.999999702f));
  p = vf_fma(p, r, vf_set1(1.0f)); /* exp(0) is exactly 1: equal scores give equal weights */
  const vi power = vi_add(vi_shift_left(vf_bits(shifted), 23), vi_set1(127 << 23)); /* 2^n; 0 for n = -127 */
  return p * vf_from_bits(power);
}

static inline float attention_sink(const attention_job *j, int64_t head, float most) {
  const berth_tensor *sinks = j->a.sinks;
  const int64_t at = head * sinks->stride[0] * (int64_t)berth_type_size(sinks->type);
  float sink;
  chain_load(&sink, sinks->type, (const char *)sinks->data + at, 1, 1);
  return expf(sink - most);
}

/* The bias and mask of one query and key. */
static inline float attention_beside_at(const berth__attention *a, int64_t batch, int64_t head, int64_t row,
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

/* Computes the same queries with the reference kernel, whose work items are queries. */
static inline berth_status attention_leave(const attention_job *j, const attention_block *b, berth_error *err) {
  berth_op_call call = *j->a.call;
  call.begin = (b->batch * j->a.q.heads + b->head) * j->a.q.length + b->row;
  call.end = call.begin + b->n_rows;
  return ((const berth__op *)call.user)->family->kernel(&call, err);
}

/* One query. */
#define attention_row_attend BERTH__PER_ISA(berth__attention_row_attend)
berth_status attention_row_attend(const attention_job *j, attention_block *b, berth_error *err);

#endif
