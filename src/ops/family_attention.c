/* attention: softmax(cap(scale * q k') + bias) v, for every head and query, with grouped heads.
 * q, k, v    [B, H, S, D], or packed as [B, S, H * D] or [S, H * D] (`heads`, `kv_heads`); v's D may differ;
 * k and v may be f16, bf16 or in blocks (q8_0) if q is f32
 * mask       bool, true where a query may attend; broadcast to [B, H, S, T]
 *   bias       added to the scores; broadcast to [B, H, S, T]
 * length     number of keys and values in a run, 0 to T: a scalar or [B] of i32 or i64. Those past it are never
 * accessed, so that one plan serves a cache at any fill level
 * sinks      [H]: a score per head that belongs to no key: it counts in the sum that weights are divided by
 * ring       an attribute: the T rows are the last T of a longer sequence, row r the last position that is r modulo T;
 * length may exceed T. Without mask and bias
 *   cap        an attribute: scores become cap * tanh(score / cap) before the bias
 * The queries are the last of the sequence: query i has position T - S + i, or length - S + i. A query that sees no key
 * gives zeros. All operands may have any strides, so a packed QKV is read in place. */
#include <inttypes.h>
#include <math.h>

#include "base/blocks.h"
#include "base/storage.h"
#include "ops/attention.h"
#include "ops/line.h"
#include "ops/operand.h"
#include "ops/registry.h"

const berth_attr berth__attention_attrs[BERTH__ATTENTION_ATTRS] = {
    [BERTH__ATTENTION_HEADS] = {.name = "heads", .kind = BERTH_ATTR_INT},
    [BERTH__ATTENTION_KV_HEADS] = {.name = "kv_heads", .kind = BERTH_ATTR_INT}, /* 0: the same as `heads` */
    [BERTH__ATTENTION_SCALE] = {.name = "scale", .kind = BERTH_ATTR_FLOAT},     /* 0: 1 / sqrt(D) */
    [BERTH__ATTENTION_MODE] = {.name = "mode", .kind = BERTH_ATTR_STRING, .s = "none"},
    [BERTH__ATTENTION_WINDOW] = {.name = "window", .kind = BERTH_ATTR_INT},
    [BERTH__ATTENTION_MERGED] = {.name = "merged",
                                 .kind = BERTH_ATTR_INT}, /* 1: the result is [B, S, H * D] whatever q is */
    [BERTH__ATTENTION_CAP] = {.name = "cap", .kind = BERTH_ATTR_FLOAT}, /* 0: none */
    [BERTH__ATTENTION_RING] = {.name = "ring", .kind = BERTH_ATTR_INT},
};

static bool attention_is_mode(const berth_attr *attr, const char *name) {
  return strcmp(attr[BERTH__ATTENTION_MODE].s, name) == 0;
}

static int64_t kv_heads_of(const berth_attr *attr, uint32_t rank) {
  return attr[BERTH__ATTENTION_KV_HEADS].i == 0 && rank < 4 ? attr[BERTH__ATTENTION_HEADS].i
                                                            : attr[BERTH__ATTENTION_KV_HEADS].i;
}

static berth_status attention_check_attributes(const berth_attr *attr, berth_error *err) {
  const bool sliding = attention_is_mode(attr, "sliding_window");
  if (!sliding && !attention_is_mode(attr, "none") && !attention_is_mode(attr, "causal"))
    return berth__fail(err, BERTH_INVALID, "mode \"%s\" is not one of none, causal and sliding_window",
                       attr[BERTH__ATTENTION_MODE].s);
  if (sliding && attr[BERTH__ATTENTION_WINDOW].i < 1)
    return berth__fail(err, BERTH_INVALID, "mode \"sliding_window\" needs a `window` of 1 or more, not %" PRId64,
                       attr[BERTH__ATTENTION_WINDOW].i);
  if (!(attr[BERTH__ATTENTION_CAP].f >= 0) || isinf(attr[BERTH__ATTENTION_CAP].f))
    return berth__fail(err, BERTH_INVALID, "a cap of %g is not 0 or more", attr[BERTH__ATTENTION_CAP].f);
  return BERTH_OK;
}

static berth_status attention_check_heads(const berth__heads *q, const berth__heads *k, const berth__heads *v,
                                          berth_error *err) {
  int64_t same;
  BERTH__TRY(berth__same_dim(q->batch, k->batch, "batch of q and k", &same, err));
  BERTH__TRY(berth__same_dim(q->batch, v->batch, "batch of q and v", &same, err));
  BERTH__TRY(berth__same_dim(k->heads, v->heads, "heads of k and v", &same, err));
  BERTH__TRY(berth__same_dim(k->length, v->length, "rows of k and v", &same, err));
  BERTH__TRY(berth__same_dim(q->size, k->size, "head size of q and k", &same, err));
  if (!berth__dim_is_fixed(q->heads) || !berth__dim_is_fixed(k->heads)) return BERTH_OK;
  if (k->heads == 0 ? q->heads != 0 : q->heads % k->heads != 0)
    return berth__fail(err, BERTH_INVALID, "%" PRId64 " heads of q do not share %" PRId64 " heads of k and v evenly",
                       q->heads, k->heads);
  return BERTH_OK;
}

/* A mask or a bias must broadcast to [B, H, S, T], without enlarging it. */
static berth_status check_beside(const berth__infer *infer, uint32_t operand, const berth__heads *q,
                                 const berth__heads *k, berth_error *err) {
  if (operand >= infer->n_in || infer->in_type[operand] == BERTH_TYPE_NONE) return BERTH_OK;
  const berth__shape scores = {.rank = 4, .dim = {q->batch, q->heads, q->length, k->length}};
  const berth__shape *beside = &infer->in_shape[operand];
  BERTH__TRY(operand == BERTH__ATTENTION_MASK ? berth__want_type(infer, operand, BERTH_BOOL, err)
                                              : berth__want_same_type(infer, BERTH__ATTENTION_Q, operand, err));
  BERTH__TRY(berth__want_rank(infer, operand, 0, 4, err));
  for (uint32_t axis = 0; axis < beside->rank; axis++) {
    const int64_t own = beside->dim[axis], score = scores.dim[4 - beside->rank + axis];
    char text[BERTH__SHAPE_TEXT], wanted[BERTH__SHAPE_TEXT];
    if (own == 1 || !berth__dim_is_fixed(own) || !berth__dim_is_fixed(score) || own == score) continue;
    return berth__fail(err, BERTH_INVALID,
                       "operand %" PRIu32 " has shape %s, which does not broadcast to the scores %s", operand,
                       berth__shape_text(beside, text), berth__shape_text(&scores, wanted));
  }
  return BERTH_OK;
}

static berth_status check_length(const berth__infer *infer, const berth__heads *q, berth_error *err) {
  if (!berth__infer_has(infer, BERTH__ATTENTION_LENGTH)) return BERTH_OK;
  const berth__shape *length = &infer->in_shape[BERTH__ATTENTION_LENGTH];
  const berth_type type = infer->in_type[BERTH__ATTENTION_LENGTH];
  int64_t same;
  if (type != BERTH_I32 && type != BERTH_I64)
    return berth__fail(err, BERTH_INVALID, "operand %d has type %s, and a length has type i32 or i64",
                       BERTH__ATTENTION_LENGTH, berth_type_name(type));
  BERTH__TRY(berth__want_rank(infer, BERTH__ATTENTION_LENGTH, 0, 1, err));
  if (length->rank == 0 || length->dim[0] == 1 || !berth__dim_is_fixed(length->dim[0])) return BERTH_OK;
  return berth__same_dim(q->batch, length->dim[0], "batch of q and its lengths", &same, err);
}

/* A mask or a bias has one entry per key, of which a ring has any number. */
static berth_status attention_check_ring(const berth__infer *infer, berth_error *err) {
  if (infer->attrs[BERTH__ATTENTION_RING].i == 0) return BERTH_OK;
  if (!berth__infer_has(infer, BERTH__ATTENTION_LENGTH))
    return berth__fail(err, BERTH_INVALID, "a ring needs a length");
  if (berth__infer_has(infer, BERTH__ATTENTION_MASK) || berth__infer_has(infer, BERTH__ATTENTION_BIAS))
    return berth__fail(err, BERTH_INVALID, "a ring takes neither a mask nor a bias");
  return BERTH_OK;
}

static berth_status check_sinks(const berth__infer *infer, const berth__heads *q, berth_error *err) {
  int64_t same;
  if (!berth__infer_has(infer, BERTH__ATTENTION_SINKS)) return BERTH_OK;
  BERTH__TRY(berth__want_same_type(infer, BERTH__ATTENTION_Q, BERTH__ATTENTION_SINKS, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__ATTENTION_SINKS, 1, 1, err));
  return berth__same_dim(q->heads, infer->in_shape[BERTH__ATTENTION_SINKS].dim[0], "heads of q and sinks", &same, err);
}

/* Keys and values have the type of the queries; if that is f32 they may have 16 bits, or be in blocks: a cache of half
 * the size, or about a quarter. */
static berth_status check_cache_type(const berth__infer *infer, berth_error *err) {
  const berth_type type = infer->in_type[BERTH__ATTENTION_K];
  const bool is_narrow = infer->in_type[BERTH__ATTENTION_Q] == BERTH_F32 &&
                         (type == BERTH_F16 || type == BERTH_BF16 || berth__type_is_block(type));
  if (!is_narrow) BERTH__TRY(berth__want_same_type(infer, BERTH__ATTENTION_Q, BERTH__ATTENTION_K, err));
  return berth__want_same_type(infer, BERTH__ATTENTION_K, BERTH__ATTENTION_V, err);
}

static berth_status attention_infer(berth__infer *infer, berth_error *err) {
  const berth_attr *attr = infer->attrs;
  const uint32_t rank = infer->in_shape[BERTH__ATTENTION_Q].rank;
  berth__heads q, k, v;
  BERTH__TRY(berth__want_float(infer, BERTH__ATTENTION_Q, err));
  BERTH__TRY(check_cache_type(infer, err));
  for (uint32_t operand = BERTH__ATTENTION_K; operand <= BERTH__ATTENTION_V; operand++)
    BERTH__TRY(berth__want_rank(infer, operand, rank, rank, err));
  BERTH__TRY(attention_check_attributes(attr, err));
  BERTH__TRY(berth__heads_infer(infer, BERTH__ATTENTION_Q, attr[BERTH__ATTENTION_HEADS].i, "heads", &q, err));
  BERTH__TRY(berth__heads_infer(infer, BERTH__ATTENTION_K, kv_heads_of(attr, rank), "kv_heads", &k, err));
  BERTH__TRY(berth__heads_infer(infer, BERTH__ATTENTION_V, kv_heads_of(attr, rank), "kv_heads", &v, err));
  BERTH__TRY(attention_check_heads(&q, &k, &v, err));
  BERTH__TRY(check_beside(infer, BERTH__ATTENTION_MASK, &q, &k, err));
  BERTH__TRY(check_beside(infer, BERTH__ATTENTION_BIAS, &q, &k, err));
  BERTH__TRY(check_length(infer, &q, err));
  BERTH__TRY(attention_check_ring(infer, err));
  BERTH__TRY(check_sinks(infer, &q, err));
  q.size = v.size;
  infer->out_type[0] = infer->in_type[BERTH__ATTENTION_Q];
  return berth__heads_shape(&q, rank == 4 && attr[BERTH__ATTENTION_MERGED].i != 0 ? 3 : rank, &infer->out_shape[0],
                            err);
}

static void describe_heads(const berth_op_call *call, berth__attention *a) {
  const int64_t heads = call->attrs[BERTH__ATTENTION_HEADS].i,
                kv_heads = kv_heads_of(call->attrs, call->in[BERTH__ATTENTION_Q].rank);
  a->q = berth__heads_of(&call->in[BERTH__ATTENTION_Q], heads);
  a->k = berth__heads_of(&call->in[BERTH__ATTENTION_K], kv_heads);
  a->v = berth__heads_of(&call->in[BERTH__ATTENTION_V], kv_heads);
  a->out = berth__heads_of(&call->out[0], a->q.heads);
}

static const berth_tensor *attention_beside(const berth__attention *a, uint32_t operand, int64_t *stride) {
  if (!berth__call_has(a->call, operand)) return NULL;
  const int64_t scores[4] = {a->q.batch, a->q.heads, a->q.length, a->k.length};
  berth__broadcast_strides(&a->call->in[operand], 4, scores, stride);
  return &a->call->in[operand];
}

void berth__attention_of(const berth_op_call *call, berth__attention *out) {
  const berth_attr *attr = call->attrs;
  *out = (berth__attention){.call = call};
  describe_heads(call, out);
  out->mask = attention_beside(out, BERTH__ATTENTION_MASK, out->mask_stride);
  out->bias = attention_beside(out, BERTH__ATTENTION_BIAS, out->bias_stride);
  out->scale = attr[BERTH__ATTENTION_SCALE].f != 0 ? attr[BERTH__ATTENTION_SCALE].f
               : out->q.size > 0                   ? 1 / sqrt((double)out->q.size)
                                                   : 1;
  out->causal = !attention_is_mode(attr, "none");
  out->window = attention_is_mode(attr, "sliding_window") ? attr[BERTH__ATTENTION_WINDOW].i : 0;
  out->cap = attr[BERTH__ATTENTION_CAP].f;
  out->ring = attr[BERTH__ATTENTION_RING].i != 0;
  if (berth__call_has(call, BERTH__ATTENTION_SINKS)) out->sinks = &call->in[BERTH__ATTENTION_SINKS];
  if (!berth__call_has(call, BERTH__ATTENTION_LENGTH)) return;
  out->length = &call->in[BERTH__ATTENTION_LENGTH];
  if (out->length->rank == 1 && out->length->dim[0] != 1) out->length_stride = out->length->stride[0];
}

berth_status berth__attention_check(const berth__attention *a, berth_error *err) {
  const int64_t n = a->length == NULL ? 0 : a->length_stride != 0 ? a->q.batch : 1;
  for (int64_t i = 0; i < n; i++) {
    const int64_t keys = berth__attention_keys(a, i);
    if (keys < 0 || (keys > a->k.length && (!a->ring || a->k.length == 0)))
      return berth__fail(err, BERTH_INVALID, "a length of %" PRId64 " is not within 0 and the capacity of %" PRId64,
                         keys, a->k.length);
  }
  return BERTH_OK;
}

typedef struct job {
  berth__attention a;
  berth__attention_room room;
  double *sum;
} job;

static void attention_describe(const berth_op_call *call, job *j) {
  berth__attention_of(call, &j->a);
  j->room.query = call->scratch;
  j->room.weight = j->room.query + j->a.q.size;
  j->sum = j->room.weight + j->a.k.length;
  j->room.one_row = j->sum + j->a.v.size;
}

/* Items are queries of each head and batch entry. */
static int64_t attention_items(const berth_op_call *call) {
  berth__attention a;
  describe_heads(call, &a);
  return a.q.batch * a.q.heads * a.q.length;
}

static uint64_t attention_scratch(const berth_op_call *call) {
  berth__attention a;
  describe_heads(call, &a);
  const int64_t widest = a.q.size > a.v.size ? a.q.size : a.v.size;
  return (uint64_t)(a.q.size + a.k.length + a.v.size + widest) * sizeof(double);
}

double berth__attention_dot(const double *a, const double *b, int64_t n) {
  double sum[4] = {0, 0, 0, 0};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int lane = 0; lane < 4; lane++) sum[lane] += a[i + lane] * b[i + lane];
  for (; i < n; i++) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* A row of keys or values. */
static void attention_load_row(const berth_tensor *tensor, const berth__heads *h, int64_t at, double *out) {
  const berth_storage storage = berth_type_storage(tensor->type);
  float block[BERTH__BLOCK_MAX];
  if (storage.elements == 1) {
    berth__line_load(tensor, at, h->stride, h->size, out);
    return;
  }
  for (int64_t i = 0; i < h->size; i++) { /* blocks run along the row, which may begin and end within one */
    const int64_t lane = (at + i) % storage.elements;
    if (i == 0 || lane == 0)
      berth__blocks_decode(tensor->type,
                           (const char *)tensor->data + berth__storage_size(storage, (uint64_t)(at + i - lane)),
                           storage.elements, block);
    out[i] = (double)block[lane];
  }
}

static int64_t attention_beside_at(const int64_t *stride, int64_t batch, int64_t head, int64_t row) {
  return batch * stride[0] + head * stride[1] + row * stride[2];
}

double berth__attention_scores(const berth__attention *a, const berth__attention_room *room, int64_t batch,
                               int64_t head, int64_t row, int64_t first, int64_t last) {
  const int64_t kv_head = berth__attention_kv_head(a, head);
  const int64_t mask = attention_beside_at(a->mask_stride, batch, head, row),
                bias = attention_beside_at(a->bias_stride, batch, head, row);
  double largest = -(double)INFINITY;
  berth__line_load(&a->call->in[BERTH__ATTENTION_Q], berth__heads_at(&a->q, batch, head, row), a->q.stride, a->q.size,
                   room->query);
  for (int64_t key = first; key < last; key++) {
    double *weight = &room->weight[berth__attention_place(a, key)];
    const int64_t at = berth__attention_place(a, key);
    *weight = -(double)INFINITY;
    if (a->mask && !berth__load_i64(a->mask, mask + key * a->mask_stride[3])) continue;
    attention_load_row(&a->call->in[BERTH__ATTENTION_K], &a->k, berth__heads_at(&a->k, batch, kv_head, at),
                       room->one_row);
    double s = berth__attention_dot(room->query, room->one_row, a->q.size) * a->scale;
    if (a->cap != 0) s = a->cap * tanh(s / a->cap);
    if (a->bias) s += berth__load_f64(a->bias, bias + key * a->bias_stride[3]);
    if (s > largest || isnan(s)) largest = s;
    *weight = s;
  }
  return largest;
}

static void attention_attend(const job *j, int64_t item) {
  const berth__attention *a = &j->a;
  const int64_t row = item % a->q.length, head = item / a->q.length % a->q.heads;
  const int64_t batch = item / a->q.length / a->q.heads;
  const int64_t kv_head = berth__attention_kv_head(a, head);
  int64_t first, last;
  berth__attention_range(a, berth__attention_keys(a, batch), row, &first, &last);
  double largest = berth__attention_scores(a, &j->room, batch, head, row, first, last), total = 0;
  if (a->sinks != NULL && largest != -(double)INFINITY) {
    const double sink = berth__load_f64(a->sinks, head * a->sinks->stride[0]);
    if (sink > largest || isnan(sink)) largest = sink;
    total = exp(sink - largest);
  }
  for (int64_t i = 0; i < a->v.size; i++) j->sum[i] = 0;
  for (int64_t key = first; key < last && largest != -(double)INFINITY; key++) {
    const int64_t at = berth__attention_place(a, key);
    const double weight = exp(j->room.weight[at] - largest);
    if (weight == 0) continue; /* masked values do not count, even if they are NaN */
    total += weight;
    attention_load_row(&a->call->in[BERTH__ATTENTION_V], &a->v, berth__heads_at(&a->v, batch, kv_head, at),
                       j->room.one_row);
    for (int64_t i = 0; i < a->v.size; i++) j->sum[i] += weight * j->room.one_row[i];
  }
  for (int64_t i = 0; i < a->v.size && total != 0; i++) j->sum[i] /= total;
  berth__line_store(&a->call->out[0], berth__heads_at(&a->out, batch, head, row), a->v.size, j->sum);
}

static berth_status attention_kernel(const berth_op_call *call, berth_error *err) {
  job j = {0};
  attention_describe(call, &j);
  BERTH__TRY(berth__attention_check(&j.a, err));
  for (int64_t item = call->begin; item < call->end; item++) attention_attend(&j, item);
  return BERTH_OK;
}

const berth__family berth__family_attention = {
    .attrs = berth__attention_attrs,
    .n_attrs = BERTH__ATTENTION_ATTRS,
    .infer = attention_infer,
    .items = attention_items,
    .scratch = attention_scratch,
    .kernel = attention_kernel,
    .takes_blocks = 1u << BERTH__ATTENTION_K | 1u << BERTH__ATTENTION_V,
};
