/* Attention and rotary embeddings, ONNX's own and com.microsoft's. Heads that are packed are left so where nothing has
 * to be put before or beside them; with a cache of earlier keys and values everything becomes [batch, heads, rows,
 * size]. */
#include "import/onnx/chain.h"
#include "import/onnx/compose.h"

typedef struct attention {
  berth_value q, k, v;
  berth_value mask, bias, length; /* or BERTH_VALUE_NONE */
  int64_t heads, kv_heads;
  double scale;
  const char *mode;
  int64_t window;
} attention;

/* ---- Heads ---- */

static uint32_t onnx_attention_rank_of(const berth__onnx_chain *c, berth_value x) {
  return c->status == BERTH_OK ? berth__onnx_shape(c->call, x)->rank : 0;
}

static berth_value swap_middle(berth__onnx_chain *c, berth_value x) {
  return berth__chain_listed(c, "transpose", x, "perm", (int64_t[]){0, 2, 1, 3}, 4);
}

/* [B, S, H D] as [B, H, S, D]; what has four axes is so already. */
static berth_value split_heads(berth__onnx_chain *c, berth_value x, int64_t heads) {
  if (onnx_attention_rank_of(c, x) != 3) return x;
  return swap_middle(c, berth__chain_reshape(c, x, (int64_t[]){0, 0, heads, -1}, 4));
}

static berth_value merge_heads(berth__onnx_chain *c, berth_value x) {
  return berth__chain_reshape(c, swap_middle(c, x), (int64_t[]){0, 0, -1}, 3);
}

/* The extent of the axis of keys, as [1]. */
static berth_value key_count(berth__onnx_chain *c, const attention *a) {
  return berth__chain_extent(c, a->k, onnx_attention_rank_of(c, a->k) == 4 ? 2 : 1);
}

static berth_value onnx_attention_append(berth__onnx_chain *c, berth_value past, berth_value x) {
  berth_attr axis = berth_attr_int("axis", 2);
  if (past == BERTH_VALUE_NONE) return x;
  return berth__chain_emit(c, "concat", (berth_value[]){past, x}, 2, &axis, 1);
}

/* Keys and values with those of the past before them; they are also results where the node wants them. */
static void with_past(berth__onnx_chain *c, attention *a, berth_value past_k, berth_value past_v, bool is_wanted) {
  if (past_k == BERTH_VALUE_NONE && !is_wanted) return;
  a->k = onnx_attention_append(c, past_k, split_heads(c, a->k, a->kv_heads));
  a->v = onnx_attention_append(c, past_v, split_heads(c, a->v, a->kv_heads));
}

/* The result is packed where the queries were. */
static berth_value onnx_attention_attend(berth__onnx_chain *c, const attention *a) {
  const bool is_packed = onnx_attention_rank_of(c, a->q) == 3, is_split = onnx_attention_rank_of(c, a->k) == 4;
  const berth_value k = is_packed ? a->k : split_heads(c, a->k, a->kv_heads);
  const berth_value v = is_packed && !is_split ? a->v : split_heads(c, a->v, a->kv_heads);
  const berth_value q = is_packed && is_split ? split_heads(c, a->q, a->heads) : a->q;
  const berth_value in[6] = {q, k, v, a->mask, a->bias, a->length};
  berth_attr attrs[] = {berth_attr_int("heads", a->heads), berth_attr_int("kv_heads", a->kv_heads),
                        berth_attr_float("scale", a->scale), berth_attr_string("mode", a->mode),
                        berth_attr_int("window", a->window)};
  size_t n_in = 6;
  while (in[n_in - 1] == BERTH_VALUE_NONE) n_in--;
  berth_value out = berth__chain_emit(c, "attention", in, n_in, attrs, sizeof attrs / sizeof *attrs);
  return is_packed && is_split ? merge_heads(c, out) : out;
}

static berth_status onnx_attention_check_heads(const berth__onnx_call *call, const attention *a, berth_error *err) {
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

/* ---- ONNX's Attention ---- */

/* true where row >= column, for the queries and keys that there are */
static berth_value lower_triangle(berth__onnx_chain *c, const attention *a) {
  const int64_t last = 1;
  berth_value rows = berth__chain_count(c, berth__chain_extent(c, a->q, onnx_attention_rank_of(c, a->q) == 4 ? 2 : 1));
  rows = berth__chain_listed(c, "unsqueeze", rows, "axes", &last, 1);
  return berth__chain_binary(c, "ge", rows, berth__chain_count(c, key_count(c, a)));
}

/* ONNX counts positions from the first key, berth from the last; without a past or a length that differs unless both
 * are as long. */
static void set_causal(berth__onnx_chain *c, attention *a, bool has_past) {
  const berth__shape *q = berth__onnx_shape(c->call, a->q), *k = berth__onnx_shape(c->call, a->k);
  const int64_t rows = q->dim[q->rank - 2], keys = k->dim[k->rank - 2];
  if (has_past || a->length != BERTH_VALUE_NONE || (rows == keys && rows != BERTH__DIM_UNKNOWN)) {
    a->mode = "causal";
    return;
  }
  berth_value mask = lower_triangle(c, a);
  a->mask = a->mask == BERTH_VALUE_NONE ? mask : berth__chain_binary(c, "and", a->mask, mask);
}

static berth_status convert_attention(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  berth_value mask = berth__onnx_in(call, 3), past_k = berth__onnx_in(call, 4), past_v = berth__onnx_in(call, 5);
  bool is_bool = mask != BERTH_VALUE_NONE && berth__onnx_value_type(call, mask) == BERTH_BOOL;
  attention a = {.q = call->in[0],
                 .k = call->in[1],
                 .v = call->in[2],
                 .mask = is_bool ? mask : BERTH_VALUE_NONE,
                 .bias = is_bool ? BERTH_VALUE_NONE : mask,
                 .length = berth__onnx_in(call, 6),
                 .heads = berth__onnx_int(call, "q_num_heads", 0),
                 .kv_heads = berth__onnx_int(call, "kv_num_heads", 0),
                 .scale = berth__onnx_float(call, "scale", 0),
                 .mode = "none"};
  BERTH__TRY(onnx_attention_check_heads(call, &a, err));
  if (berth__onnx_float(call, "softcap", 0) != 0)
    return berth__onnx_unsupported(call, err, "a soft cap on scores is not supported");
  if (a.length != BERTH_VALUE_NONE && past_k != BERTH_VALUE_NONE)
    return berth__onnx_unsupported(call, err, "lengths of the keys beside a past are not supported");
  with_past(&c, &a, past_k, past_v, call->n_out > 1);
  if (c.status == BERTH_OK && berth__onnx_int(call, "is_causal", 0) != 0)
    set_causal(&c, &a, past_k != BERTH_VALUE_NONE);
  call->out[0] = onnx_attention_attend(&c, &a);
  berth__onnx_set(call, 1, a.k);
  berth__onnx_set(call, 2, a.v);
  return c.status;
}

/* ---- Rotary embeddings ---- */

typedef struct rotary {
  berth_value x, cosines, sines,
      positions; /* positions: [B, S], or BERTH_VALUE_NONE for tables that have a row a position */
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
  if (onnx_attention_rank_of(c, positions) > 1) return positions;
  berth_value rows = berth__chain_count(c, berth__chain_extent(c, x, onnx_attention_rank_of(c, x) == 4 ? 2 : 1));
  return berth__chain_binary(c, "add", rows, positions);
}

/* How many heads a packed width makes, when the size of one follows from the table. */
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

/* key < length[b], as [B, 1, 1, T] */
static berth_value within_lengths(berth__onnx_chain *c, const attention *a, berth_value lengths) {
  berth_value keys = berth__chain_cast(c, berth__chain_count(c, key_count(c, a)), BERTH_I32);
  berth_value rows = berth__chain_reshape(c, berth__chain_cast(c, lengths, BERTH_I32), (int64_t[]){-1, 1, 1, 1}, 4);
  return berth__chain_binary(c, "lt", keys, rows);
}

/* Keys that are padding: lengths [B], flags [B, T], or flags [B, S, T]. As in Runtime they are not cut off but get a
 * low score, so that rows that see nothing else come out the same. */
static berth_status add_padding(berth__onnx_chain *c, attention *a, berth_value mask, berth_error *err) {
  if (mask == BERTH_VALUE_NONE) return BERTH_OK;
  const berth__shape *shape = berth__onnx_shape(c->call, mask);
  const int64_t batch = berth__onnx_shape(c->call, a->q)->dim[0];
  const uint32_t rank = shape->rank;
  berth_value seen;
  if (rank < 1 || rank > 3 || (rank == 1 && shape->dim[0] != batch))
    return berth__onnx_unsupported(c->call, err, "a mask of this shape is not supported");
  if (rank == 1) {
    seen = within_lengths(c, a, mask);
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

/* Queries, keys and values of one product: their widths. */
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

/* past [2, B, N, P, D] holds keys and values; the same goes out. */
static berth_value half_of(berth__onnx_chain *c, berth_value past, int64_t which) {
  const int64_t first = 0;
  if (past == BERTH_VALUE_NONE) return past;
  return berth__chain_listed(c, "squeeze", berth__chain_slice(c, past, 0, which, which + 1), "axes", &first, 1);
}

static berth_value stack_halves(berth__onnx_chain *c, const attention *a) {
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
  attention a = {.q = berth__chain_slice(&c, all, -1, 0, width[0]),
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
  BERTH__TRY(onnx_attention_check_heads(call, &a, err));
  berth_value past = berth__onnx_in(call, PAST);
  with_past(&c, &a, half_of(&c, past, 0), half_of(&c, past, 1), call->n_out > 1);
  BERTH__TRY(c.status);
  BERTH__TRY(add_padding(&c, &a, berth__onnx_in(call, MASK), err));
  call->out[0] = onnx_attention_attend(&c, &a);
  if (call->n_out > 1) call->out[1] = stack_halves(&c, &a);
  return c.status;
}

/* The three parts of a bias [H + H + Hv] on queries, keys and values that are packed. */
static berth_status add_biases(berth__onnx_chain *c, attention *a, berth_value bias, berth_error *err) {
  const int64_t width = berth__onnx_shape(c->call, a->q)->dim[2];
  if (bias == BERTH_VALUE_NONE) return BERTH_OK;
  if (!berth__dim_is_fixed(width) || onnx_attention_rank_of(c, a->q) != 3 ||
      onnx_attention_rank_of(c, a->k) != onnx_attention_rank_of(c, a->v))
    return berth__onnx_unsupported(c->call, err, "a bias needs queries of a fixed width");
  a->q = berth__chain_binary(c, "add", a->q, berth__chain_slice(c, bias, 0, 0, width));
  if (onnx_attention_rank_of(c, a->k) != 3) return BERTH_OK; /* keys of a cache have theirs */
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
  attention a = {.q = call->in[Q],
                 .k = call->in[K],
                 .v = call->in[V],
                 .mask = BERTH_VALUE_NONE,
                 .bias = berth__onnx_in(call, SCORES),
                 .length = BERTH_VALUE_NONE,
                 .heads = heads,
                 .kv_heads = heads,
                 .scale = berth__onnx_float(call, "scale", 0),
                 .mode = berth__onnx_int(call, "unidirectional", 0) != 0 ? "causal" : "none"};
  BERTH__TRY(onnx_attention_check_heads(call, &a, err));
  BERTH__TRY(add_biases(&c, &a, berth__onnx_in(call, BIAS), err));
  with_past(&c, &a, berth__onnx_in(call, PAST_K), berth__onnx_in(call, PAST_V), call->n_out > 1);
  BERTH__TRY(c.status);
  BERTH__TRY(add_padding(&c, &a, berth__onnx_in(call, PADDING), err));
  call->out[0] = onnx_attention_attend(&c, &a);
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
static berth_status unpack_grouped(berth__onnx_chain *c, attention *a, berth_error *err) {
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

/* The position of row i is length[b] + 1 - S + i, where `lengths` count one less than there are keys. */
static void rotate_grouped(berth__onnx_chain *c, attention *a) {
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

/* The cache is taken to hold just the keys before these rows: it grows with every call. */
static berth_status convert_grouped(berth__onnx_call *call, berth_error *err) {
  static const char *const refused[] = {"softcap", "smooth_softmax", "qk_output"};
  berth__onnx_chain c = {call, err, BERTH_OK};
  const int64_t window = berth__onnx_int(call, "local_window_size", -1);
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(onnx_attention_refuse(call, refused, 3, err));
  if (call->n_in <= GQ_LENGTHS || call->n_in > GQ_SINES + 1 || call->in[GQ_LENGTHS] == BERTH_VALUE_NONE)
    return berth__onnx_unsupported(call, err, "it has %zu operands, which is not a form that is supported", call->n_in);
  attention a = {.q = call->in[GQ_Q],
                 .k = call->in[GQ_K],
                 .v = call->in[GQ_V],
                 .mask = BERTH_VALUE_NONE,
                 .bias = BERTH_VALUE_NONE,
                 .length = BERTH_VALUE_NONE,
                 .heads = berth__onnx_int(call, "num_heads", 0),
                 .kv_heads = berth__onnx_int(call, "kv_num_heads", 0),
                 .scale = berth__onnx_float(call, "scale", 0),
                 .mode = window > 0 ? "sliding_window" : "causal",
                 .window = window > 0 ? window : 0};
  BERTH__TRY(unpack_grouped(&c, &a, err));
  BERTH__TRY(onnx_attention_check_heads(call, &a, err));
  if (berth__onnx_int(call, "do_rotary", 0) != 0) {
    if (call->n_in <= GQ_SINES) return berth__fail(err, BERTH_MALFORMED, "the tables to rotate with are missing");
    rotate_grouped(&c, &a);
  }
  with_past(&c, &a, call->in[GQ_PAST_K], call->in[GQ_PAST_V], call->n_out > 1);
  a.mask = within_lengths(&c, &a, berth__chain_with(&c, "add", call->in[GQ_LENGTHS], 1));
  call->out[0] = onnx_attention_attend(&c, &a);
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
