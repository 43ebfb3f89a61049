/* Attention as berth's op, or as products and a softmax if that op cannot express it. */
#include "import/onnx/attention.h"

#include <math.h>
#include <string.h>

#include "import/onnx/compose.h"
#include "import/onnx/control.h"

/* ---- Heads ---- */

uint32_t berth__onnx_attend_rank(const berth__onnx_chain *c, berth_value x) {
  return c->status == BERTH_OK ? berth__onnx_shape(c->call, x)->rank : 0;
}

static berth_value attend_swap_middle(berth__onnx_chain *c, berth_value x) {
  return berth__chain_listed(c, "transpose", x, "perm", (int64_t[]){0, 2, 1, 3}, 4);
}

/* [B, S, H D] as [B, H, S, D]; values with four axes already have this form. */
static berth_value attend_split_heads(berth__onnx_chain *c, berth_value x, int64_t heads) {
  if (berth__onnx_attend_rank(c, x) != 3) return x;
  return attend_swap_middle(c, berth__chain_reshape(c, x, (int64_t[]){0, 0, heads, -1}, 4));
}

static berth_value attend_merge_heads(berth__onnx_chain *c, berth_value x) {
  return berth__chain_reshape(c, attend_swap_middle(c, x), (int64_t[]){0, 0, -1}, 3);
}

static int64_t attend_row_axis(const berth__onnx_chain *c, berth_value x) {
  return berth__onnx_attend_rank(c, x) == 4 ? 2 : 1;
}

berth_value berth__onnx_attend_key_count(berth__onnx_chain *c, const berth__onnx_heads *a) {
  return berth__chain_extent(c, a->k, attend_row_axis(c, a->k));
}

int64_t berth__onnx_attend_key_dim(const berth__onnx_chain *c, const berth__onnx_heads *a) {
  return c->status == BERTH_OK ? berth__onnx_shape(c->call, a->k)->dim[attend_row_axis(c, a->k)] : BERTH__DIM_UNKNOWN;
}

berth_status berth__onnx_attend_check(const berth__onnx_call *call, const berth__onnx_heads *a, berth_error *err) {
  uint32_t rank = berth__onnx_shape(call, a->q)->rank;
  if (rank != 3 && rank != 4) return berth__onnx_unsupported(call, err, "queries of rank %u are not supported", rank);
  for (int i = 0; i < 2; i++) {
    uint32_t other = berth__onnx_shape(call, i == 0 ? a->k : a->v)->rank;
    if (other != 3 && other != 4)
      return berth__onnx_unsupported(call, err, "keys and values of rank %u are not supported", other);
  }
  if ((rank == 3 && a->heads < 1) || a->heads < 0 || a->kv_heads < 0)
    return berth__fail(err, BERTH_MALFORMED, "the number of heads is missing or negative");
  return BERTH_OK;
}

/* ---- The past ---- */

static berth_value attend_append(berth__onnx_chain *c, berth_value past, berth_value x) {
  berth_attr axis = berth_attr_int("axis", 2);
  if (past == BERTH_VALUE_NONE) return x;
  return berth__chain_emit(c, "concat", (berth_value[]){past, x}, 2, &axis, 1);
}

void berth__onnx_attend_past(berth__onnx_chain *c, berth__onnx_heads *a, berth_value past_k, berth_value past_v,
                             bool is_wanted) {
  if (past_k == BERTH_VALUE_NONE && !is_wanted) return;
  a->k = attend_append(c, past_k, attend_split_heads(c, a->k, a->kv_heads));
  a->v = attend_append(c, past_v, attend_split_heads(c, a->v, a->kv_heads));
}

/* ---- Which keys a row sees ---- */

static berth_value attend_row_count(berth__onnx_chain *c, const berth__onnx_heads *a) {
  return berth__chain_extent(c, a->q, attend_row_axis(c, a->q));
}

static berth_value attend_for_batch(berth__onnx_chain *c, berth_value lengths) {
  return berth__chain_reshape(c, lengths, (int64_t[]){-1, 1, 1, 1}, 4);
}

berth_value berth__onnx_attend_offset(berth__onnx_chain *c, const berth__onnx_heads *a) {
  berth_value keys = a->length == BERTH_VALUE_NONE ? berth__onnx_attend_key_count(c, a)
                                                   : attend_for_batch(c, berth__chain_cast(c, a->length, BERTH_I64));
  return berth__chain_binary(c, "sub", keys, attend_row_count(c, a));
}

berth_value berth__onnx_attend_before(berth__onnx_chain *c, const berth__onnx_heads *a, berth_value lengths) {
  berth_value keys = berth__chain_cast(c, berth__chain_count(c, berth__onnx_attend_key_count(c, a)), BERTH_I32);
  return berth__chain_binary(c, "lt", keys, attend_for_batch(c, berth__chain_cast(c, lengths, BERTH_I32)));
}

static void attend_and(berth__onnx_chain *c, berth__onnx_heads *a, berth_value mask) {
  a->mask = a->mask == BERTH_VALUE_NONE ? mask : berth__chain_binary(c, "and", a->mask, mask);
}

void berth__onnx_attend_within(berth__onnx_chain *c, berth__onnx_heads *a, berth_value offset, int64_t left,
                               int64_t right) {
  const int64_t last = 1;
  berth_value rows = berth__chain_count(c, attend_row_count(c, a));
  rows = berth__chain_binary(c, "add", berth__chain_listed(c, "unsqueeze", rows, "axes", &last, 1), offset);
  const berth_value keys = berth__chain_count(c, berth__onnx_attend_key_count(c, a));
  if (right >= 0)
    attend_and(c, a, berth__chain_binary(c, "le", keys, berth__chain_with(c, "add", rows, (double)right)));
  if (left >= 0) attend_and(c, a, berth__chain_binary(c, "ge", keys, berth__chain_with(c, "sub", rows, (double)left)));
}

/* ---- berth's op ---- */

static berth_value attend_by_op(berth__onnx_chain *c, const berth__onnx_heads *a) {
  const bool is_packed = berth__onnx_attend_rank(c, a->q) == 3, is_split = berth__onnx_attend_rank(c, a->k) == 4;
  const berth_value k = is_packed ? a->k : attend_split_heads(c, a->k, a->kv_heads);
  const berth_value v = is_packed && !is_split ? a->v : attend_split_heads(c, a->v, a->kv_heads);
  const berth_value q = is_packed && is_split ? attend_split_heads(c, a->q, a->heads) : a->q;
  const berth_value in[6] = {q, k, v, a->mask, a->bias, a->length};
  berth_attr attrs[] = {berth_attr_int("heads", a->heads), berth_attr_int("kv_heads", a->kv_heads),
                        berth_attr_float("scale", a->scale), berth_attr_string("mode", a->mode),
                        berth_attr_int("window", a->window)};
  size_t n_in = 6;
  while (in[n_in - 1] == BERTH_VALUE_NONE) n_in--;
  berth_value out = berth__chain_emit(c, "attention", in, n_in, attrs, sizeof attrs / sizeof *attrs);
  return is_packed && is_split ? attend_merge_heads(c, out) : out;
}

/* ---- Products and a softmax ---- */

/* An extent in the target shape of a reshape: that of an axis of a value, or without a value the remaining extent. */
typedef struct attend_extent {
  berth_value of;
  uint32_t axis;
} attend_extent;

#define ATTEND_REST \
  (attend_extent) { BERTH_VALUE_NONE, 0 }

static berth_value attend_extent_value(berth__onnx_chain *c, const attend_extent *extent) {
  const int64_t rest = -1;
  berth_value out = BERTH_VALUE_NONE;
  if (extent->of != BERTH_VALUE_NONE) return berth__chain_extent(c, extent->of, extent->axis);
  if (c->status == BERTH_OK) c->status = berth__onnx_list(c->call, &rest, 1, &out, c->err);
  return out;
}

/* Extents that are not known yet are computed by ops. */
static berth_value attend_reshape(berth__onnx_chain *c, berth_value x, const attend_extent extent[4]) {
  berth__shape shape = {.rank = 4};
  berth_value parts[4];
  bool is_known = true;
  for (uint32_t i = 0; i < 4 && c->status == BERTH_OK; i++) {
    shape.dim[i] = extent[i].of == BERTH_VALUE_NONE ? 0 : berth__onnx_shape(c->call, extent[i].of)->dim[extent[i].axis];
    is_known = is_known && shape.dim[i] != BERTH__DIM_UNKNOWN;
  }
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  if (is_known) {
    berth_shape target = berth__shape_export(c->call->graph, &shape);
    for (uint32_t i = 0; i < 4; i++)
      if (extent[i].of == BERTH_VALUE_NONE) target.dim[i] = (berth_dim){.extent = -1};
    berth_attr attrs[] = {berth_attr_dims("shape", target.dim, 4), berth_attr_int("allowzero", 1)};
    return berth__chain_emit(c, "reshape", &x, 1, attrs, 2);
  }
  berth_attr axis = berth_attr_int("axis", 0), allow_zero = berth_attr_int("allowzero", 1);
  for (uint32_t i = 0; i < 4; i++) parts[i] = attend_extent_value(c, &extent[i]);
  berth_value in[2] = {x, berth__chain_emit(c, "concat", parts, 4, &axis, 1)};
  return berth__chain_emit(c, "reshape", in, 2, &allow_zero, 1);
}

/* Everything as [B, H, S, D] in the type of the computation. */
typedef struct attend_heads {
  berth_value q, k, v;
  berth_type type, wide; /* that of the queries; f64 or f32 */
  bool is_grouped;       /* several query heads share a key head */
} attend_heads;

static attend_heads attend_open(berth__onnx_chain *c, const berth__onnx_heads *a) {
  attend_heads h = {.q = attend_split_heads(c, a->q, a->heads),
                    .k = attend_split_heads(c, a->k, a->kv_heads),
                    .v = attend_split_heads(c, a->v, a->kv_heads),
                    .type = BERTH_F32,
                    .wide = BERTH_F32};
  if (c->status != BERTH_OK) return h;
  const int64_t heads = berth__onnx_shape(c->call, h.q)->dim[1], kv_heads = berth__onnx_shape(c->call, h.k)->dim[1];
  h.is_grouped = heads != kv_heads || heads == BERTH__DIM_UNKNOWN;
  h.type = berth__onnx_value_type(c->call, h.q);
  if (h.type == BERTH_F64 || berth__onnx_value_type(c->call, h.v) == BERTH_F64) h.wide = BERTH_F64;
  h.q = berth__chain_cast(c, h.q, h.wide);
  h.k = berth__chain_cast(c, h.k, h.wide);
  h.v = berth__chain_cast(c, h.v, h.wide);
  return h;
}

/* Query heads that share a key head become additional rows of it. */
static berth_value attend_group(berth__onnx_chain *c, const attend_heads *h, berth_value x) {
  if (!h->is_grouped) return x;
  return attend_reshape(c, x, (attend_extent[]){{x, 0}, {h->k, 1}, ATTEND_REST, {x, 3}});
}

static berth_value attend_ungroup(berth__onnx_chain *c, const attend_heads *h, berth_value x) {
  if (!h->is_grouped) return x;
  return attend_reshape(c, x, (attend_extent[]){{h->q, 0}, {h->q, 1}, {h->q, 2}, {x, 3}});
}

static berth_value attend_scaled(berth__onnx_chain *c, const berth__onnx_heads *a, berth_value q) {
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  const int64_t size = berth__onnx_shape(c->call, q)->dim[3];
  if (a->scale != 0) return berth__chain_with(c, "mul", q, a->scale);
  if (berth__dim_is_fixed(size)) return berth__chain_with(c, "mul", q, size > 0 ? 1 / sqrt((double)size) : 1);
  berth_value extent = berth__chain_cast(c, berth__chain_extent(c, q, 3), berth__onnx_value_type(c->call, q));
  return berth__chain_binary(c, "mul", q, berth__chain_unary(c, "rsqrt", extent));
}

static berth_value attend_multiply(berth__onnx_chain *c, const berth__onnx_heads *a, const attend_heads *h) {
  const berth_value keys = berth__chain_listed(c, "transpose", h->k, "perm", (int64_t[]){0, 1, 3, 2}, 4);
  const berth_value rows = attend_group(c, h, attend_scaled(c, a, h->q));
  return attend_ungroup(c, h, berth__chain_binary(c, "matmul", rows, keys));
}

/* Turns the causal mode and the lengths into masks. */
static void attend_mask_all(berth__onnx_chain *c, berth__onnx_heads *a) {
  if (strcmp(a->mode, "none") != 0)
    berth__onnx_attend_within(c, a, berth__onnx_attend_offset(c, a), a->window > 0 ? a->window - 1 : -1, 0);
  if (a->length != BERTH_VALUE_NONE) attend_and(c, a, berth__onnx_attend_before(c, a, a->length));
}

/* A bias of -infinity masks like a mask, whatever the score is. */
static berth_value attend_beside(berth__onnx_chain *c, const berth__onnx_heads *a, const attend_heads *h,
                                 berth_value scores) {
  const berth_value never = berth__chain_scalar(c, h->wide, -(double)INFINITY);
  if (a->bias != BERTH_VALUE_NONE) {
    const berth_value bias = berth__chain_cast(c, a->bias, h->wide);
    const berth_value sum = berth__chain_binary(c, "add", scores, bias);
    scores = berth__chain_where(c, berth__chain_binary(c, "eq", bias, never), never, sum);
  }
  return a->mask == BERTH_VALUE_NONE ? scores : berth__chain_where(c, a->mask, scores, never);
}

/* A row without visible keys is 0, where a softmax would be NaN. */
static berth_value attend_softmax(berth__onnx_chain *c, const berth__onnx_heads *a, const attend_heads *h,
                                  berth_value scores) {
  const int64_t last = -1;
  const berth_value weights = berth__chain_along(c, "softmax", scores, "axis", -1);
  if (a->mask == BERTH_VALUE_NONE && a->bias == BERTH_VALUE_NONE) return weights;
  const berth_value most = berth__chain_listed(c, "reduce_max", scores, "axes", &last, 1);
  const berth_value sees_nothing = berth__chain_with(c, "eq", most, -(double)INFINITY);
  return berth__chain_where(c, sees_nothing, berth__chain_scalar(c, h->wide, 0), weights);
}

/* Scores or weights after a graph of the node has changed them. */
static berth_value attend_changed(berth__onnx_chain *c, const berth__onnx_heads *a, const attend_heads *h,
                                  const berth__onnx_graph *graph, berth_value x) {
  berth_value out = BERTH_VALUE_NONE;
  if (graph == NULL) return x;
  x = berth__chain_cast(c, x, a->graph_type);
  if (c->status == BERTH_OK && graph->n_inputs != 1)
    c->status = berth__fail(c->err, BERTH_MALFORMED, "a graph that changes scores has %zu input%s, expected 1",
                            graph->n_inputs, berth__plural(graph->n_inputs));
  if (c->status == BERTH_OK) c->status = berth__onnx_inner(c->call, graph, &x, 1, &out, 1, c->err);
  return berth__chain_cast(c, out, h->wide);
}

static berth_value attend_by_scores(berth__onnx_chain *c, berth__onnx_heads *a) {
  const attend_heads h = attend_open(c, a);
  berth_value stage[4]; /* of the scores, by their modes */
  attend_mask_all(c, a);
  stage[0] = stage[1] = attend_multiply(c, a, &h);
  if (a->softcap != 0) {
    const berth_value bounded = berth__chain_unary(c, "tanh", berth__chain_with(c, "div", stage[0], a->softcap));
    stage[1] = berth__chain_with(c, "mul", bounded, a->softcap);
  }
  stage[2] = attend_changed(c, a, &h, a->score_graph, attend_beside(c, a, &h, stage[1]));
  stage[3] = attend_changed(c, a, &h, a->weight_graph, attend_softmax(c, a, &h, stage[2]));
  if (a->wants_scores) a->scores = berth__chain_cast(c, stage[a->scores_mode], h.type);
  berth_value out = berth__chain_binary(c, "matmul", attend_group(c, &h, stage[3]), h.v);
  out = berth__chain_cast(c, attend_ungroup(c, &h, out), h.type);
  return berth__onnx_attend_rank(c, a->q) == 3 ? attend_merge_heads(c, out) : out;
}

berth_value berth__onnx_attend(berth__onnx_chain *c, berth__onnx_heads *a) {
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  const bool same_types = berth__onnx_value_type(c->call, a->q) == berth__onnx_value_type(c->call, a->v);
  const bool is_plain = a->softcap == 0 && a->score_graph == NULL && a->weight_graph == NULL;
  a->scores = BERTH_VALUE_NONE;
  return is_plain && !a->wants_scores && same_types ? attend_by_op(c, a) : attend_by_scores(c, a);
}
