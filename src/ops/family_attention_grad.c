/* attention_grad: the gradients of q, k and v, from attention's operands and the gradient dy of its result. With the
 * recomputed weights p of a query, and dp = dy v' for each key:
 *
 *   ds = p (dp - sum of p dp),  dq = scale ds k,  dk = scale ds' q,  dv = p' dy
 *
 * and ds times the derivative of the cap if there is one. Only one query's scores exist at any time. Heads of q that
 * share a head of k and v are summed there. Masked keys have no gradient, and neither have those past the length. */
#include <math.h>

#include "ops/attention.h"
#include "ops/line.h"
#include "ops/operand.h"
#include "ops/registry.h"

static berth_status attention_grad_check(const berth__infer *infer, berth_error *err) {
  if (infer->attrs[BERTH__ATTENTION_RING].i != 0)
    return berth__fail(err, BERTH_UNSUPPORTED, "the gradient of attention with `ring` is not supported");
  BERTH__TRY(berth__want_same_type(infer, BERTH__ATTENTION_Q, BERTH__ATTENTION_K, err));
  return berth__want_same_type(infer, BERTH__ATTENTION_Q, BERTH__ATTENTION_DY, err);
}

static berth_status attention_grad_infer(berth__infer *infer, berth_error *err) {
  berth__infer forward = *infer;
  berth__shape shape;
  berth_type type;
  int64_t same;
  forward.n_in = BERTH__ATTENTION_DY;
  forward.n_out = 1;
  forward.out_type = &type;
  forward.out_shape = &shape;
  BERTH__TRY(berth__family_attention.infer(&forward, err));
  BERTH__TRY(attention_grad_check(infer, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__ATTENTION_DY, shape.rank, shape.rank, err));
  for (uint32_t axis = 0; axis < shape.rank; axis++)
    BERTH__TRY(berth__same_dim(shape.dim[axis], infer->in_shape[BERTH__ATTENTION_DY].dim[axis],
                               "attention's result and its gradient", &same, err));
  for (uint32_t i = 0; i < 3; i++) {
    infer->out_type[i] = type;
    infer->out_shape[i] = infer->in_shape[i];
  }
  return BERTH_OK;
}

void berth__attention_grad_of(const berth_op_call *call, berth__attention_grad *out) {
  berth__attention_of(call, &out->a);
  out->dy = berth__heads_of(&call->in[BERTH__ATTENTION_DY], out->a.q.heads);
  out->dk = berth__heads_of(&call->out[1], out->a.k.heads);
  out->dv = berth__heads_of(&call->out[2], out->a.v.heads);
}

typedef struct job {
  berth__attention_grad g;
  berth__attention_room room;
  double *dy, *dp, *dq; /* a row; one per key; a row */
  double *dk, *dv;      /* [T, D]: sums over all queries */
} job;

static int64_t attention_grad_items(const berth_op_call *call) {
  berth__attention a;
  berth__attention_of(call, &a);
  return a.k.batch * a.k.heads;
}

static int64_t attention_grad_widest(const berth__attention *a) {
  return a->q.size > a->v.size ? a->q.size : a->v.size;
}

static uint64_t attention_grad_scratch(const berth_op_call *call) {
  berth__attention a;
  berth__attention_of(call, &a);
  const int64_t rows = 2 * a.q.size + a.v.size + attention_grad_widest(&a);
  return (uint64_t)(rows + a.k.length * (2 + a.q.size + a.v.size)) * sizeof(double);
}

static void attention_grad_describe(const berth_op_call *call, job *j) {
  const berth__attention *a = &j->g.a;
  berth__attention_grad_of(call, &j->g);
  j->room.query = call->scratch;
  j->room.one_row = j->room.query + a->q.size;
  j->room.weight = j->room.one_row + attention_grad_widest(a);
  j->dp = j->room.weight + a->k.length;
  j->dy = j->dp + a->k.length;
  j->dq = j->dy + a->v.size;
  j->dk = j->dq + a->q.size;
  j->dv = j->dk + a->k.length * a->q.size;
}

/* Turns scores into weights that add up to 1, or less if there is a sink; false: no key is visible. */
static bool attention_grad_weigh(const job *j, int64_t head, double largest, int64_t first, int64_t last) {
  const berth__attention *a = &j->g.a;
  double total = 0;
  if (largest == -(double)INFINITY) return false;
  if (a->sinks != NULL) {
    const double sink = berth__load_f64(a->sinks, head * a->sinks->stride[0]);
    if (sink > largest || isnan(sink)) largest = sink;
    total = exp(sink - largest);
  }
  for (int64_t key = first; key < last; key++) {
    j->room.weight[key] = exp(j->room.weight[key] - largest);
    total += j->room.weight[key];
  }
  for (int64_t key = first; key < last; key++) j->room.weight[key] /= total;
  return total != 0;
}

/* Derivative of the cap: 1, or less for scores near the cap. room.one_row has the key. */
static double attention_grad_slope(const job *j) {
  const berth__attention *a = &j->g.a;
  if (a->cap == 0) return 1;
  const double t = tanh(berth__attention_dot(j->room.query, j->room.one_row, a->q.size) * a->scale / a->cap);
  return 1 - t * t;
}

/* The contributions of the values; returns the sum of p dp. */
static double attention_grad_values(const job *j, int64_t batch, int64_t head, int64_t row, int64_t first,
                                    int64_t last) {
  const berth__attention *a = &j->g.a;
  const int64_t kv_head = berth__attention_kv_head(a, head), size = a->v.size;
  double sum = 0;
  berth__line_load(&a->call->in[BERTH__ATTENTION_DY], berth__heads_at(&j->g.dy, batch, head, row), j->g.dy.stride, size,
                   j->dy);
  for (int64_t key = first; key < last; key++) {
    const double p = j->room.weight[key];
    j->dp[key] = 0;
    if (p == 0) continue;
    berth__line_load(&a->call->in[BERTH__ATTENTION_V], berth__heads_at(&a->v, batch, kv_head, key), a->v.stride, size,
                     j->room.one_row);
    j->dp[key] = berth__attention_dot(j->dy, j->room.one_row, size);
    sum += p * j->dp[key];
    for (int64_t i = 0; i < size; i++) j->dv[key * size + i] += p * j->dy[i];
  }
  return sum;
}

static void attention_grad_row(const job *j, int64_t batch, int64_t head, int64_t row) {
  const berth__attention *a = &j->g.a;
  const int64_t kv_head = berth__attention_kv_head(a, head), size = a->q.size;
  int64_t first, last;
  berth__attention_range(a, berth__attention_keys(a, batch), row, &first, &last);
  for (int64_t i = 0; i < size; i++) j->dq[i] = 0;
  const double largest = berth__attention_scores(a, &j->room, batch, head, row, first, last);
  if (attention_grad_weigh(j, head, largest, first, last)) {
    const double sum = attention_grad_values(j, batch, head, row, first, last);
    for (int64_t key = first; key < last; key++) {
      if (j->room.weight[key] == 0) continue;
      berth__line_load(&a->call->in[BERTH__ATTENTION_K], berth__heads_at(&a->k, batch, kv_head, key), a->k.stride, size,
                       j->room.one_row);
      const double ds = j->room.weight[key] * (j->dp[key] - sum) * attention_grad_slope(j) * a->scale;
      for (int64_t i = 0; i < size; i++) {
        j->dq[i] += ds * j->room.one_row[i];
        j->dk[key * size + i] += ds * j->room.query[i];
      }
    }
  }
  berth__line_store(&a->call->out[0], berth__heads_at(&a->out, batch, head, row), size, j->dq);
}

/* A head of k and v, with all heads of q that read it. */
static void attention_grad_item(const job *j, int64_t item) {
  const berth__attention *a = &j->g.a;
  const int64_t batch = item / a->k.heads, kv_head = item % a->k.heads, sharing = a->q.heads / a->k.heads;
  const int64_t size = a->q.size, v_size = a->v.size;
  for (int64_t i = 0; i < a->k.length * (size + v_size); i++) j->dk[i] = 0; /* dv follows it */
  for (int64_t head = kv_head * sharing; head < (kv_head + 1) * sharing; head++)
    for (int64_t row = 0; row < a->q.length; row++) attention_grad_row(j, batch, head, row);
  for (int64_t key = 0; key < a->k.length; key++) {
    berth__line_store(&a->call->out[1], berth__heads_at(&j->g.dk, batch, kv_head, key), size, j->dk + key * size);
    berth__line_store(&a->call->out[2], berth__heads_at(&j->g.dv, batch, kv_head, key), v_size, j->dv + key * v_size);
  }
}

static berth_status attention_grad_kernel(const berth_op_call *call, berth_error *err) {
  job j = {0};
  attention_grad_describe(call, &j);
  BERTH__TRY(berth__attention_check(&j.g.a, err));
  for (int64_t item = call->begin; item < call->end; item++) attention_grad_item(&j, item);
  return BERTH_OK;
}

const berth__family berth__family_attention_grad = {
    .attrs = berth__attention_attrs,
    .n_attrs = BERTH__ATTENTION_ATTRS,
    .infer = attention_grad_infer,
    .items = attention_grad_items,
    .scratch = attention_grad_scratch,
    .kernel = attention_grad_kernel,
    .may_lack = 1u << BERTH__ATTENTION_MASK | 1u << BERTH__ATTENTION_BIAS | 1u << BERTH__ATTENTION_LENGTH |
                1u << BERTH__ATTENTION_SINKS,
};
