/* A call of `attention` as its kernels see it. */
#ifndef BERTH_OPS_ATTENTION_H
#define BERTH_OPS_ATTENTION_H

#include "ops/heads.h"

typedef struct berth__attention {
  const berth_op_call *call;
  berth__heads q, k, v, out;
  const berth_tensor *mask, *bias;        /* NULL where there is none */
  int64_t mask_stride[4], bias_stride[4]; /* over [B, H, S, T] */
  double scale;
  bool causal;
  int64_t window;             /* keys that a query sees at most; 0: no limit */
  const berth_tensor *length; /* how many of k.length keys there are in this run; NULL: all of them */
  int64_t length_stride;      /* over the batch */
  double cap;                 /* scores become cap * tanh(score / cap); 0: they stay */
  bool ring; /* length may be above k.length: key p lies in row p modulo that, the last ones are there */
  const berth_tensor *sinks; /* one score per head that counts in the sum of the weights alone; NULL: none */
} berth__attention;

extern const berth_attr berth__attention_attrs[BERTH__ATTENTION_ATTRS];
void berth__attention_of(const berth_op_call *call, berth__attention *out);
/* Lengths are those of this run: each must be 0 to k.length, or any from 0 on for a ring. */
berth_status berth__attention_check(const berth__attention *a, berth_error *err);

/* Room of the reference kernels: a query, a weight for each key, a row of keys or values. */
typedef struct berth__attention_room {
  double *query, *weight, *one_row;
} berth__attention_room;
/* Loads a query and makes the scores of the keys [first, last), -infinity where the mask hides one; gives the largest,
 * or a NaN where there is one. */
double berth__attention_scores(const berth__attention *a, const berth__attention_room *room, int64_t batch,
                               int64_t head, int64_t row, int64_t first, int64_t last);
/* Products of two rows, summed four beside each other, always in the same way. */
double berth__attention_dot(const double *a, const double *b, int64_t n);

/* attention_grad: what is beside attention's operands. a.out is the gradient of q. */
typedef struct berth__attention_grad {
  berth__attention a;
  berth__heads dy, dk, dv;
} berth__attention_grad;
void berth__attention_grad_of(const berth_op_call *call, berth__attention_grad *out);

/* The keys of a batch entry that there are in this run. */
static inline int64_t berth__attention_keys(const berth__attention *a, int64_t batch) {
  return a->length != NULL ? berth__load_i64(a->length, batch * a->length_stride) : a->k.length;
}

static inline int64_t berth__attention_kv_head(const berth__attention *a, int64_t head) {
  return head / (a->q.heads / a->k.heads);
}
/* The row of k and v that a key lies in. */
static inline int64_t berth__attention_place(const berth__attention *a, int64_t key) {
  return a->ring ? key % a->k.length : key;
}
/* How many of n keys from this one on lie in rows that follow each other. */
static inline int64_t berth__attention_run(const berth__attention *a, int64_t key, int64_t n) {
  const int64_t left = a->k.length - berth__attention_place(a, key);
  return n < left || !a->ring ? n : left;
}
/* The keys [*first, *last) of `keys` that a query may see, whatever the mask says. */
static inline void berth__attention_range(const berth__attention *a, int64_t keys, int64_t row, int64_t *first,
                                          int64_t *last) {
  const int64_t position = keys - a->q.length + row;
  const int64_t least = a->ring && keys > a->k.length ? keys - a->k.length : 0; /* those before were written over */
  *first = a->window > 0 && position + 1 - a->window > least ? position + 1 - a->window : least;
  *last = a->causal && position + 1 < keys ? position + 1 : keys;
}

#endif
