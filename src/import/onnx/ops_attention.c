/* Attention and rotary embeddings, ONNX's own and com.microsoft's. Packed heads stay packed if nothing is concatenated
 * with them; with a cache of earlier keys and values everything becomes [batch, heads, rows, size]. */
#include "import/onnx/attention.h"

#include <math.h>

#include "import/onnx/compose.h"

/* ---- ONNX's Attention ---- */

enum {
  AT_Q,
  AT_K,
  AT_V,
  AT_MASK,
  AT_PAST_K,
  AT_PAST_V,
  AT_LENGTH
};

/* Extends a mask to the length of the keys: keys beyond it are hidden. Whether it is shorter may be known only after
 * binding. */
static berth_value mask_for_all_keys(berth__onnx_chain *c, const berth__onnx_heads *a, berth_value mask) {
  const uint32_t rank = berth__onnx_attend_rank(c, mask);
  if (rank == 0 || c->status != BERTH_OK) return mask;
  const int64_t given = berth__onnx_shape(c->call, mask)->dim[rank - 1], keys = berth__onnx_attend_key_dim(c, a);
  if (given == keys && keys != BERTH__DIM_UNKNOWN) return mask;
  const bool is_bool = berth__onnx_value_type(c->call, mask) == BERTH_BOOL;
  const int64_t last[] = {-1}, none[] = {0};
  berth_attr attrs[] = {berth_attr_ints("axes", last, 1), berth_attr_float("value", is_bool ? 0 : -(double)INFINITY)};
  berth_value missing =
      berth__chain_binary(c, "sub", berth__onnx_attend_key_count(c, a), berth__chain_extent(c, mask, -1));
  berth_value pads[2] = {BERTH_VALUE_NONE, missing};
  if (c->status == BERTH_OK) c->status = berth__onnx_list(c->call, none, 1, &pads[0], c->err);
  berth_attr axis = berth_attr_int("axis", 0);
  berth_value both = berth__chain_emit(c, "concat", pads, 2, &axis, 1);
  return berth__chain_emit(c, "pad", (berth_value[]){mask, both}, 2, attrs, 2);
}

/* Boolean masks, and numbers that are added to the scores. */
static void set_mask(berth__onnx_chain *c, berth__onnx_heads *a, berth_value mask) {
  if (mask == BERTH_VALUE_NONE || c->status != BERTH_OK) return;
  if (berth__onnx_value_type(c->call, mask) == BERTH_BOOL) {
    a->mask = mask_for_all_keys(c, a, mask);
    return;
  }
  mask = berth__chain_cast(c, mask, berth__onnx_value_type(c->call, a->q));
  a->bias = mask_for_all_keys(c, a, mask);
}

static bool same_extent(int64_t a, int64_t b) { return a == b && a != BERTH__DIM_UNKNOWN; }

/* How far a query sees from its own position, which is its row plus `offset` keys before it: those of the past, or the
 * length minus the rows, or none. berth's op counts rows from the last key, which is the same only if exactly that many
 * keys come before them; otherwise it becomes a mask. */
static void set_reach(berth__onnx_chain *c, berth__onnx_heads *a, berth_value past, bool rows_are_new_keys) {
  const bool is_causal = berth__onnx_int(c->call, "is_causal", 0) != 0;
  const int64_t left = berth__onnx_int(c->call, "left_window_size", -1);
  const int64_t far = (int64_t)1 << 40; /* no limit, but small enough to add to */
  const int64_t given = berth__onnx_int(c->call, "right_window_size", -1);
  const int64_t right = is_causal ? 0 : given > far ? far : given;
  if (left < 0 && right < 0) return;
  if (right == 0 && left < INT64_MAX && (rows_are_new_keys || a->length != BERTH_VALUE_NONE)) {
    a->mode = left < 0 ? "causal" : "sliding_window";
    a->window = left < 0 ? 0 : left + 1;
    return;
  }
  berth_value offset = BERTH_VALUE_NONE;
  if (past != BERTH_VALUE_NONE)
    offset = berth__chain_extent(c, past, 2);
  else if (a->length != BERTH_VALUE_NONE)
    offset = berth__onnx_attend_offset(c, a);
  else
    offset = berth__chain_scalar(c, BERTH_I64, 0);
  berth__onnx_attend_within(c, a, offset, left, right);
}

static berth_status check_attention(const berth__onnx_call *call, const berth__onnx_heads *a, berth_error *err) {
  const bool has_past_k = berth__onnx_in(call, AT_PAST_K) != BERTH_VALUE_NONE,
             has_past_v = berth__onnx_in(call, AT_PAST_V) != BERTH_VALUE_NONE;
  BERTH__TRY(berth__onnx_attend_check(call, a, err));
  if (has_past_k != has_past_v) return berth__fail(err, BERTH_MALFORMED, "a past needs both keys and values");
  if (a->length != BERTH_VALUE_NONE && has_past_k)
    return berth__fail(err, BERTH_MALFORMED, "lengths of the keys may not be given beside a past");
  if (a->scores_mode < 0 || a->scores_mode > 3)
    return berth__fail(err, BERTH_MALFORMED, "there is no qk_matmul_output_mode %lld", (long long)a->scores_mode);
  if (berth__onnx_int(call, "left_window_size", -1) < -1 || berth__onnx_int(call, "right_window_size", -1) < -1)
    return berth__fail(err, BERTH_MALFORMED, "a window is -1, for none, or larger");
  return BERTH_OK;
}

/* softmax_precision can be ignored: a softmax is computed in at least f32, and in f64 for f64 operands. */
static berth_status convert_attention(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  const berth_value past_k = berth__onnx_in(call, AT_PAST_K), past_v = berth__onnx_in(call, AT_PAST_V);
  berth__onnx_heads a = {.q = call->in[AT_Q],
                         .k = call->in[AT_K],
                         .v = call->in[AT_V],
                         .mask = BERTH_VALUE_NONE,
                         .bias = BERTH_VALUE_NONE,
                         .length = berth__onnx_in(call, AT_LENGTH),
                         .heads = berth__onnx_int(call, "q_num_heads", 0),
                         .kv_heads = berth__onnx_int(call, "kv_num_heads", 0),
                         .scale = berth__onnx_float(call, "scale", 0),
                         .softcap = fmax(0, berth__onnx_float(call, "softcap", 0)), /* negative means none, like 0 */
                         .wants_scores = berth__onnx_is_asked(call, 3),
                         .scores_mode = berth__onnx_int(call, "qk_matmul_output_mode", 0),
                         .mode = "none"};
  BERTH__TRY(check_attention(call, &a, err));
  const berth__shape *q = berth__onnx_shape(call, a.q), *k = berth__onnx_shape(call, a.k);
  const bool rows_are_new_keys = same_extent(q->dim[q->rank - 2], k->dim[k->rank - 2]);
  berth__onnx_attend_past(&c, &a, past_k, past_v, berth__onnx_is_asked(call, 1) || berth__onnx_is_asked(call, 2));
  set_mask(&c, &a, berth__onnx_in(call, AT_MASK));
  set_reach(&c, &a, past_k, rows_are_new_keys);
  call->out[0] = berth__onnx_attend(&c, &a);
  berth__onnx_set(call, 1, a.k);
  berth__onnx_set(call, 2, a.v);
  berth__onnx_set(call, 3, a.scores);
  return c.status;
}

/* ---- FlexAttention ---- */

static const berth__onnx_graph *graph_of(const berth__onnx_call *call, const char *name) {
  const berth__onnx_attr *attr = berth__onnx_find(call, name);
  return attr != NULL ? attr->graph : NULL;
}

/* Two graphs may change the scores and the weights; their inputs have the type that the softmax is asked for in. */
static berth_status convert_flex_attention(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  berth__onnx_heads a = {.q = call->in[0],
                         .k = call->in[1],
                         .v = call->in[2],
                         .mask = BERTH_VALUE_NONE,
                         .bias = BERTH_VALUE_NONE,
                         .length = BERTH_VALUE_NONE,
                         .scale = berth__onnx_float(call, "scale", 0),
                         .mode = "none",
                         .score_graph = graph_of(call, "score_mod"),
                         .weight_graph = graph_of(call, "prob_mod")};
  BERTH__TRY(berth__onnx_attend_check(call, &a, err));
  const berth_type type = berth__onnx_value_type(call, a.q);
  BERTH__TRY(berth__onnx_named_type(call, "softmax_precision", berth__onnx_wide(type), &a.graph_type, err));
  if (!berth__type_is_float(a.graph_type))
    return berth__fail(err, BERTH_MALFORMED, "a softmax of type %s is asked for", berth_type_name(a.graph_type));
  const berth_value out = berth__onnx_attend(&c, &a);
  call->out[0] = berth__chain_cast(&c, out, berth__onnx_value_type(call, a.v));
  return c.status;
}

const berth__onnx_handler berth__onnx_preview[] = {
    {"FlexAttention", convert_flex_attention, NULL},
    {NULL, NULL, NULL},
};

/* ---- Rotary embeddings ---- */

typedef struct rotary {
  berth_value x, cosines, sines,
      positions; /* positions: [B, S], or BERTH_VALUE_NONE for tables that have one row per position */
  int64_t heads, dims, interleaved;
} rotary;

static berth_value rotate(berth__onnx_chain *c, const rotary *r) {
  berth_value cosines = r->cosines, sines = r->sines;
  if (r->positions != BERTH_VALUE_NONE) {
    cosines = berth__chain_binary(c, "embedding", cosines, r->positions);
    sines = berth__chain_binary(c, "embedding", sines, r->positions);
  }
  berth_attr attrs[] = {berth_attr_int("heads", r->heads), berth_attr_int("dims", r->dims),
                        berth_attr_int("interleaved", r->interleaved)};
  return berth__chain_emit(c, "rope", (berth_value[]){r->x, cosines, sines}, 3, attrs, 3);
}

static berth_status convert_rotary(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  rotary r = {.x = call->in[0],
              .cosines = call->in[1],
              .sines = call->in[2],
              .positions = berth__onnx_in(call, 3),
              .heads = berth__onnx_int(call, "num_heads", 0),
              .dims = berth__onnx_int(call, "rotary_embedding_dim", 0),
              .interleaved = berth__onnx_int(call, "interleaved", 0)};
  call->out[0] = rotate(&c, &r);
  return c.status;
}

/* A single position is that of the first row. */
static berth_value spread_positions(berth__onnx_chain *c, berth_value positions, berth_value x) {
  if (berth__onnx_attend_rank(c, positions) > 1) return positions;
  berth_value rows = berth__chain_count(c, berth__chain_extent(c, x, berth__onnx_attend_rank(c, x) == 4 ? 2 : 1));
  return berth__chain_binary(c, "add", rows, positions);
}

/* The number of heads of a packed width, when the size of one follows from the table. */
static int64_t heads_of_table(const berth__onnx_call *call, berth_value x, berth_value table) {
  const berth__shape *shape = berth__onnx_shape(call, x), *rows = berth__onnx_shape(call, table);
  const int64_t width = shape->dim[shape->rank - 1], half = rows->dim[rows->rank - 1];
  return shape->rank == 3 && berth__dim_is_fixed(width) && half > 0 ? width / (2 * half) : 0;
}

static berth_status convert_ms_rotary(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 4, err));
  rotary r = {.x = call->in[0],
              .cosines = call->in[2],
              .sines = call->in[3],
              .positions = spread_positions(&c, call->in[1], call->in[0]),
              .heads = berth__onnx_int(call, "num_heads", 0),
              .dims = berth__onnx_int(call, "rotary_embedding_dim", 0),
              .interleaved = berth__onnx_int(call, "interleaved", 0)};
  if (r.heads == 0) r.heads = heads_of_table(call, r.x, r.cosines);
  call->out[0] = rotate(&c, &r);
  return c.status;
}

/* ---- com.microsoft ---- */

/* Keys that are padding: lengths [B], flags [B, T], or flags [B, S, T]. As in ONNX Runtime they are not hidden but get
 * a low score, so that rows without other keys have the same result. */
static berth_status add_padding(berth__onnx_chain *c, berth__onnx_heads *a, berth_value mask, berth_error *err) {
  if (mask == BERTH_VALUE_NONE) return BERTH_OK;
  const berth__shape *shape = berth__onnx_shape(c->call, mask);
  const int64_t batch = berth__onnx_shape(c->call, a->q)->dim[0];
  const uint32_t rank = shape->rank;
  berth_value seen;
  if (rank < 1 || rank > 3 || (rank == 1 && shape->dim[0] != batch))
    return berth__onnx_unsupported(c->call, err, "a mask of this shape is not supported");
  if (rank == 1) {
    seen = berth__onnx_attend_before(c, a, mask);
  } else {
    seen = berth__chain_cast(c, mask, BERTH_BOOL);
    seen = berth__chain_listed(c, "unsqueeze", seen, "axes", (int64_t[]){1, 2}, rank == 2 ? 2 : 1);
  }
  const berth_type type = berth__onnx_value_type(c->call, a->q);
  berth_value low = berth__chain_scalar(c, type, berth__onnx_float(c->call, "mask_filter_value", -10000));
  berth_value bias = berth__chain_where(c, seen, berth__chain_scalar(c, type, 0), low);
  a->bias = a->bias == BERTH_VALUE_NONE ? bias : berth__chain_binary(c, "add", a->bias, bias);
  return BERTH_OK;
}

/* The widths of queries, keys and values in one product. */
static berth_status packed_widths(const berth__onnx_call *call, berth_value weights, int64_t width[3],
                                  berth_error *err) {
  uint32_t n;
  const int64_t *given = berth__onnx_ints(call, "qkv_hidden_sizes", &n);
  const berth__shape *shape = berth__onnx_shape(call, weights);
  if (shape->rank != 2 || !berth__dim_is_fixed(shape->dim[1]) || (n != 0 && n != 3))
    return berth__onnx_unsupported(call, err, "its weights are no matrix of a fixed width");
  for (int i = 0; i < 3; i++) width[i] = n == 3 ? given[i] : shape->dim[1] / 3;
  if (width[0] < 1 || width[1] < 1 || width[2] < 1 || width[0] > shape->dim[1] || width[1] > shape->dim[1])
    return berth__fail(err, BERTH_MALFORMED, "the widths of queries, keys and values are wrong");
  return BERTH_OK;
}

/* past [2, B, N, P, D] holds keys and values; the result has the same form. */
static berth_value half_of(berth__onnx_chain *c, berth_value past, int64_t which) {
  const int64_t first = 0;
  if (past == BERTH_VALUE_NONE) return past;
  return berth__chain_listed(c, "squeeze", berth__chain_slice(c, past, 0, which, which + 1), "axes", &first, 1);
}

static berth_value stack_halves(berth__onnx_chain *c, const berth__onnx_heads *a) {
  const int64_t first = 0;
  berth_attr axis = berth_attr_int("axis", 0);
  berth_value parts[2] = {berth__chain_listed(c, "unsqueeze", a->k, "axes", &first, 1),
                          berth__chain_listed(c, "unsqueeze", a->v, "axes", &first, 1)};
  return berth__chain_emit(c, "concat", parts, 2, &axis, 1);
}

static berth_status onnx_attention_refuse(const berth__onnx_call *call, const char *const *names, size_t n,
                                          berth_error *err) {
  for (size_t i = 0; i < n; i++)
    if (berth__onnx_int(call, names[i], 0) > 0 || berth__onnx_float(call, names[i], 0) > 0)
      return berth__onnx_unsupported(call, err, "the attribute %s is not supported", names[i]);
  return BERTH_OK;
}

static berth_status convert_ms_attention(berth__onnx_call *call, berth_error *err) {
  static const char *const refused[] = {"do_rotary", "past_present_share_buffer"};
  enum {
    X,
    WEIGHTS,
    BIAS,
    MASK,
    PAST,
    SCORES
  };
  berth__onnx_chain c = {call, err, BERTH_OK};
  int64_t width[3], heads = berth__onnx_int(call, "num_heads", 0);
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  BERTH__TRY(onnx_attention_refuse(call, refused, 2, err));
  BERTH__TRY(packed_widths(call, call->in[WEIGHTS], width, err));
  berth_value all = berth__chain_binary(&c, "matmul", call->in[X], call->in[WEIGHTS]);
  if (berth__onnx_in(call, BIAS) != BERTH_VALUE_NONE) all = berth__chain_binary(&c, "add", all, call->in[BIAS]);
  berth__onnx_heads a = {.q = berth__chain_slice(&c, all, -1, 0, width[0]),
                         .k = berth__chain_slice(&c, all, -1, width[0], width[0] + width[1]),
                         .v = berth__chain_slice(&c, all, -1, width[0] + width[1], INT64_MAX),
                         .mask = BERTH_VALUE_NONE,
                         .bias = berth__onnx_in(call, SCORES),
                         .length = BERTH_VALUE_NONE,
                         .heads = heads,
                         .kv_heads = heads,
                         .scale = berth__onnx_float(call, "scale", 0),
                         .mode = berth__onnx_int(call, "unidirectional", 0) != 0 ? "causal" : "none"};
  BERTH__TRY(c.status);
  BERTH__TRY(berth__onnx_attend_check(call, &a, err));
  berth_value past = berth__onnx_in(call, PAST);
  berth__onnx_attend_past(&c, &a, half_of(&c, past, 0), half_of(&c, past, 1), call->n_out > 1);
  BERTH__TRY(c.status);
  BERTH__TRY(add_padding(&c, &a, berth__onnx_in(call, MASK), err));
  call->out[0] = berth__onnx_attend(&c, &a);
  if (call->n_out > 1) call->out[1] = stack_halves(&c, &a);
  return c.status;
}

/* The three parts of a bias [H + H + Hv] for packed queries, keys and values. */
static berth_status add_biases(berth__onnx_chain *c, berth__onnx_heads *a, berth_value bias, berth_error *err) {
  const int64_t width = berth__onnx_shape(c->call, a->q)->dim[2];
  if (bias == BERTH_VALUE_NONE) return BERTH_OK;
  if (!berth__dim_is_fixed(width) || berth__onnx_attend_rank(c, a->q) != 3 ||
      berth__onnx_attend_rank(c, a->k) != berth__onnx_attend_rank(c, a->v))
    return berth__onnx_unsupported(c->call, err, "a bias needs queries of a fixed width");
  a->q = berth__chain_binary(c, "add", a->q, berth__chain_slice(c, bias, 0, 0, width));
  if (berth__onnx_attend_rank(c, a->k) != 3) return BERTH_OK; /* keys of a cache already have theirs */
  a->k = berth__chain_binary(c, "add", a->k, berth__chain_slice(c, bias, 0, width, 2 * width));
  a->v = berth__chain_binary(c, "add", a->v, berth__chain_slice(c, bias, 0, 2 * width, INT64_MAX));
  return BERTH_OK;
}

static berth_status convert_multi_head(berth__onnx_call *call, berth_error *err) {
  enum {
    Q,
    K,
    V,
    BIAS,
    PADDING,
    SCORES,
    PAST_K,
    PAST_V,
    PAST_LENGTH
  };
  berth__onnx_chain c = {call, err, BERTH_OK};
  int64_t heads = berth__onnx_int(call, "num_heads", 0);
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  if (berth__onnx_in(call, K) == BERTH_VALUE_NONE || berth__onnx_in(call, V) == BERTH_VALUE_NONE)
    return berth__onnx_unsupported(call, err, "keys and values packed with the queries are not supported");
  if (berth__onnx_in(call, PAST_LENGTH) != BERTH_VALUE_NONE)
    return berth__onnx_unsupported(call, err, "a cache that is written in place is not supported");
  berth__onnx_heads a = {.q = call->in[Q],
                         .k = call->in[K],
                         .v = call->in[V],
                         .mask = BERTH_VALUE_NONE,
                         .bias = berth__onnx_in(call, SCORES),
                         .length = BERTH_VALUE_NONE,
                         .heads = heads,
                         .kv_heads = heads,
                         .scale = berth__onnx_float(call, "scale", 0),
                         .mode = berth__onnx_int(call, "unidirectional", 0) != 0 ? "causal" : "none"};
  BERTH__TRY(berth__onnx_attend_check(call, &a, err));
  BERTH__TRY(add_biases(&c, &a, berth__onnx_in(call, BIAS), err));
  berth__onnx_attend_past(&c, &a, berth__onnx_in(call, PAST_K), berth__onnx_in(call, PAST_V), call->n_out > 1);
  BERTH__TRY(c.status);
  BERTH__TRY(add_padding(&c, &a, berth__onnx_in(call, PADDING), err));
  call->out[0] = berth__onnx_attend(&c, &a);
  berth__onnx_set(call, 1, a.k);
  berth__onnx_set(call, 2, a.v);
  return c.status;
}

/* ---- Grouped queries ---- */

enum {
  GQ_Q,
  GQ_K,
  GQ_V,
  GQ_PAST_K,
  GQ_PAST_V,
  GQ_LENGTHS,
  GQ_TOTAL,
  GQ_COSINES,
  GQ_SINES
};

/* Queries, keys and values side by side in the first operand. */
static berth_status unpack_grouped(berth__onnx_chain *c, berth__onnx_heads *a, berth_error *err) {
  const berth__shape *shape = berth__onnx_shape(c->call, a->q);
  const int64_t width = shape->rank == 3 ? shape->dim[2] : BERTH__DIM_UNKNOWN;
  if (a->k != BERTH_VALUE_NONE && a->v != BERTH_VALUE_NONE) return BERTH_OK;
  if (!berth__dim_is_fixed(width) || a->heads < 1 || a->kv_heads < 1)
    return berth__onnx_unsupported(c->call, err, "packed queries need a fixed width");
  const int64_t size = width / (a->heads + 2 * a->kv_heads), q = size * a->heads, k = size * a->kv_heads;
  const berth_value all = a->q;
  a->q = berth__chain_slice(c, all, -1, 0, q);
  a->k = berth__chain_slice(c, all, -1, q, q + k);
  a->v = berth__chain_slice(c, all, -1, q + k, INT64_MAX);
  return c->status;
}

/* The position of row i is length[b] + 1 - S + i, where `lengths` counts one less than there are keys. */
static void rotate_grouped(berth__onnx_chain *c, berth__onnx_heads *a) {
  berth_value rows = berth__chain_extent(c, a->q, 1);
  berth_value lengths = berth__chain_cast(c, berth__onnx_in(c->call, GQ_LENGTHS), BERTH_I64);
  berth_value first = berth__chain_with(c, "add", berth__chain_binary(c, "sub", lengths, rows), 1);
  first = berth__chain_reshape(c, first, (int64_t[]){-1, 1}, 2);
  rotary r = {.x = a->q,
              .cosines = berth__onnx_in(c->call, GQ_COSINES),
              .sines = berth__onnx_in(c->call, GQ_SINES),
              .positions = berth__chain_binary(c, "add", first, berth__chain_count(c, rows)),
              .heads = a->heads,
              .interleaved = berth__onnx_int(c->call, "rotary_interleaved", 0)};
  if (c->status != BERTH_OK) return;
  const berth__shape *table = berth__onnx_shape(c->call, r.cosines);
  const int64_t half = table->dim[table->rank - 1];
  r.dims = berth__dim_is_fixed(half) ? 2 * half : 0;
  a->q = rotate(c, &r);
  r.x = a->k;
  r.heads = a->kv_heads;
  a->k = rotate(c, &r);
}

/* The cache is assumed to hold exactly the keys before these rows: it grows with every call. */
static berth_status convert_grouped(berth__onnx_call *call, berth_error *err) {
  static const char *const refused[] = {"smooth_softmax", "qk_output"};
  berth__onnx_chain c = {call, err, BERTH_OK};
  const int64_t window = berth__onnx_int(call, "local_window_size", -1);
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(onnx_attention_refuse(call, refused, 2, err));
  if (call->n_in <= GQ_LENGTHS || call->n_in > GQ_SINES + 1 || call->in[GQ_LENGTHS] == BERTH_VALUE_NONE)
    return berth__onnx_unsupported(call, err, "it has %zu operands, which is not a form that is supported", call->n_in);
  berth__onnx_heads a = {.q = call->in[GQ_Q],
                         .k = call->in[GQ_K],
                         .v = call->in[GQ_V],
                         .mask = BERTH_VALUE_NONE,
                         .bias = BERTH_VALUE_NONE,
                         .length = BERTH_VALUE_NONE,
                         .heads = berth__onnx_int(call, "num_heads", 0),
                         .kv_heads = berth__onnx_int(call, "kv_num_heads", 0),
                         .scale = berth__onnx_float(call, "scale", 0),
                         .softcap = berth__onnx_float(call, "softcap", 0),
                         .mode = window > 0 ? "sliding_window" : "causal",
                         .window = window > 0 ? window : 0};
  BERTH__TRY(unpack_grouped(&c, &a, err));
  BERTH__TRY(berth__onnx_attend_check(call, &a, err));
  if (berth__onnx_int(call, "do_rotary", 0) != 0) {
    if (call->n_in <= GQ_SINES) return berth__fail(err, BERTH_MALFORMED, "the tables to rotate with are missing");
    rotate_grouped(&c, &a);
  }
  berth__onnx_attend_past(&c, &a, call->in[GQ_PAST_K], call->in[GQ_PAST_V], call->n_out > 1);
  a.mask = berth__onnx_attend_before(&c, &a, berth__chain_with(&c, "add", call->in[GQ_LENGTHS], 1));
  call->out[0] = berth__onnx_attend(&c, &a);
  berth__onnx_set(call, 1, a.k);
  berth__onnx_set(call, 2, a.v);
  return c.status;
}

const berth__onnx_handler berth__onnx_attention[] = {
    {"Attention", convert_attention, NULL},
    {"RotaryEmbedding", convert_rotary, NULL},
    {NULL, NULL, NULL},
};

const berth__onnx_handler berth__onnx_microsoft_attention[] = {
    {"Attention", convert_ms_attention, NULL},
    {"GroupQueryAttention", convert_grouped, NULL},
    {"MultiHeadAttention", convert_multi_head, NULL},
    {"RotaryEmbedding", convert_ms_rotary, NULL},
    {NULL, NULL, NULL},
};
