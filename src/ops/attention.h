/* A call of `attention` as its kernels see it. */
#ifndef BERTH_OPS_ATTENTION_H
#define BERTH_OPS_ATTENTION_H

#include "ops/heads.h"

typedef struct berth__attention {
  const berth_op_call *call;
  berth__heads q, k, v, out;
  const berth_tensor *mask, *bias;        /* NULL: none */
  int64_t mask_stride[4], bias_stride[4]; /* over [B, H, S, T] */
  double scale;
  bool causal;
  int64_t window;             /* most keys that a query sees; 0: no limit */
  const berth_tensor *length; /* number of keys in this run, out of k.length; NULL: all of them */
  int64_t length_stride;      /* along the batch */
  double cap;                 /* scores become cap * tanh(score / cap); 0: unchanged */
  bool ring; /* length may exceed k.length: key p is in row p modulo k.length, and only the last ones are kept */
  const berth_tensor *sinks; /* one score per head that only counts in the sum of the weights; NULL: none */
} berth__attention;

extern const berth_attr berth__attention_attrs[BERTH__ATTENTION_ATTRS];
void berth__attention_of(const berth_op_call *call, berth__attention *out);
/* Checks the lengths of this run: each must be 0 to k.length, or at least 0 for a ring. */
berth_status berth__attention_check(const berth__attention *a, berth_error *err);

/* Scratch of the reference kernels: a query, a weight per key, a row of keys or values. */
typedef struct berth__attention_room {
  double *query, *weight, *one_row;
} berth__attention_room;
/* Loads a query and computes the scores of the keys [first, last), -infinity for masked ones; returns the maximum, or
 * NaN if there is one. */
double berth__attention_scores(const berth__attention *a, const berth__attention_room *room, int64_t batch,
                               int64_t head, int64_t row, int64_t first, int64_t last);
/* The dot product of two rows, as four interleaved sums, always in the same order. */
double berth__attention_dot(const double *a, const double *b, int64_t n);

/* attention_grad: what it has in addition to attention's operands. a.out is the gradient of q. */
typedef struct berth__attention_grad {
  berth__attention a;
  berth__heads dy, dk, dv;
} berth__attention_grad;
void berth__attention_grad_of(const berth_op_call *call, berth__attention_grad *out);

/* The number of keys of a batch entry in this run. */
static inline int64_t berth__attention_keys(const berth__attention *a, int64_t batch) {
  return a->length != NULL ? berth__load_i64(a->length, batch * a->length_stride) : a->k.length;
}

static inline int64_t berth__attention_kv_head(const berth__attention *a, int64_t head) {
  return head / (a->q.heads / a->k.heads);
}
/* The row of k and v that contains a key. */
static inline int64_t berth__attention_place(const berth__attention *a, int64_t key) {
  return a->ring ? key % a->k.length : key;
}
/* How many of n keys, from this one on, are in consecutive rows. */
static inline int64_t berth__attention_run(const berth__attention *a, int64_t key, int64_t n) {
  const int64_t left = a->k.length - berth__attention_place(a, key);
  return n < left || !a->ring ? n : left;
}
/* The range [*first, *last) of `keys` that a query may see, before the mask. */
static inline void berth__attention_range(const berth__attention *a, int64_t keys, int64_t row, int64_t *first,
                                          int64_t *last) {
  const int64_t position = keys - a->q.length + row;
  const int64_t least = a->ring && keys > a->k.length ? keys - a->k.length : 0; /* earlier ones have been overwritten */
  *first = a->window > 0 && position + 1 - a->window > least ? position + 1 - a->window : least;
  *last = a->causal && position + 1 < keys ? position + 1 : keys;
}

#endif
