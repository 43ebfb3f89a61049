/* LinearAttention and CausalConvWithState: ops that process a sequence with a state of fixed size. */
#include "graph/graph.h"
#include "import/onnx/chain.h"
#include "import/onnx/compose.h"

#include <math.h>

#define FEW_STEPS 16 /* up to this many steps are unrolled; more become a loop */

/* ---- LinearAttention ---- */

enum {
  LA_Q,
  LA_K,
  LA_V,
  LA_STATE,
  LA_DECAY,
  LA_BETA
};

/* Everything with the sequence as axis 1 and the key heads as axis 2, in f32 or f64. `q` is scaled. */
typedef struct linear_attention {
  berth_value q;           /* [B, T, H, G, Dk]: G query heads share a key head */
  berth_value k, v;        /* [B, T, H, Dk, 1], [B, T, H, 1, Dv] */
  berth_value decay, beta; /* [B, T, H, Dk or 1, 1], [B, T, H or 1, 1, 1], or BERTH_VALUE_NONE; the factor is e^decay */
  berth_value state;       /* [B, H, Dk, Dv] */
} linear_attention;

/* [B, T, H D] as five axes. */
static berth_value linear_split(berth__onnx_chain *c, berth_value x, berth_type type, int64_t a, int64_t b, int64_t d) {
  if (x == BERTH_VALUE_NONE) return x;
  return berth__chain_reshape(c, berth__chain_cast(c, x, type), (int64_t[]){0, 0, a, b, d}, 5);
}

/* Zeros of the state's shape, if there is no past. */
static berth_value linear_no_state(berth__onnx_chain *c, const linear_attention *a, berth_type type) {
  berth_value extents[] = {berth__chain_extent(c, a->k, 0), berth__chain_extent(c, a->k, 2),
                           berth__chain_extent(c, a->k, 3), berth__chain_extent(c, a->v, 4)};
  berth_attr axis = berth_attr_int("axis", 0);
  berth_value shape = berth__chain_emit(c, "concat", extents, 4, &axis, 1);
  return berth__chain_binary(c, "expand", berth__chain_scalar(c, type, 0), shape);
}

/* One step of the sequence: the state is updated and then read. `at` holds the rows of one step. Returns [B, H G
 * Dv]. */
static berth_value linear_step(berth__onnx_chain *c, linear_attention *at) {
  if (at->decay != BERTH_VALUE_NONE) at->state = berth__chain_binary(c, "mul", at->state, at->decay);
  berth_value v = at->v;
  if (at->beta != BERTH_VALUE_NONE) {
    const berth_value row = berth__chain_listed(c, "transpose", at->k, "perm", (int64_t[]){0, 1, 3, 2}, 4);
    v = berth__chain_binary(c, "sub", v, berth__chain_binary(c, "matmul", row, at->state));
    v = berth__chain_binary(c, "mul", v, at->beta);
  }
  at->state = berth__chain_binary(c, "add", at->state, berth__chain_binary(c, "mul", at->k, v));
  return berth__chain_reshape(c, berth__chain_binary(c, "matmul", at->q, at->state), (int64_t[]){0, -1}, 2);
}

static berth_value linear_row(berth__onnx_chain *c, berth_value x, berth_value step) {
  berth_attr axis = berth_attr_int("axis", 1);
  if (x == BERTH_VALUE_NONE) return x;
  return berth__chain_emit(c, "gather", (berth_value[]){x, step}, 2, &axis, 1);
}

static linear_attention linear_rows(berth__onnx_chain *c, const linear_attention *a, berth_value step) {
  return (linear_attention){.q = linear_row(c, a->q, step),
                            .k = linear_row(c, a->k, step),
                            .v = linear_row(c, a->v, step),
                            .decay = linear_row(c, a->decay, step),
                            .beta = linear_row(c, a->beta, step),
                            .state = a->state};
}

/* [B, T, H G Dv], unrolled over few steps. */
static berth_value linear_unrolled(berth__onnx_chain *c, linear_attention *a, int64_t steps) {
  berth_value parts[FEW_STEPS];
  const int64_t middle = 1;
  berth_attr axis = berth_attr_int("axis", 1);
  for (int64_t i = 0; i < steps; i++) {
    linear_attention at = linear_rows(c, a, berth__chain_scalar(c, BERTH_I64, (double)i));
    parts[i] = berth__chain_listed(c, "unsqueeze", linear_step(c, &at), "axes", &middle, 1);
    a->state = at.state;
  }
  return steps == 1 ? parts[0] : berth__chain_emit(c, "concat", parts, (size_t)steps, &axis, 1);
}

static berth_value linear_rolled(berth__onnx_chain *c, linear_attention *a) {
  const berth_value trips = berth__chain_extent(c, a->q, 1), always = berth__chain_scalar(c, BERTH_BOOL, 1);
  berth_value begin[3], end[4];
  if (c->status == BERTH_OK)
    c->status =
        berth__onnx_emit(c->call, "loop_begin", (berth_value[]){trips, always, a->state}, 3, NULL, 0, begin, 3, c->err);
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  linear_attention at = *a;
  at.state = begin[BERTH__LOOP_CARRIED];
  at = linear_rows(c, &at, begin[BERTH__LOOP_ROUND]);
  const berth_value row = linear_step(c, &at);
  const berth_value in[] = {
      begin[BERTH__LOOP_ROUND], begin[BERTH__LOOP_STARTS], trips, always, begin[BERTH__LOOP_CARRIED], at.state, row};
  if (c->status == BERTH_OK) c->status = berth__onnx_emit(c->call, "loop_end", in, 7, NULL, 0, end, 4, c->err);
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  a->state = end[BERTH__LOOP_LAST];
  return berth__chain_listed(c, "transpose", end[BERTH__LOOP_LAST + 1], "perm", (int64_t[]){1, 0, 2}, 3);
}

static berth_status linear_check(const berth__onnx_call *call, int64_t heads, int64_t kv_heads, berth_error *err) {
  const berth__span rule = berth__onnx_string(call, "update_rule", "gated_delta");
  const bool has_delta = berth__span_is(rule, "delta") || berth__span_is(rule, "gated_delta"),
             has_gate = berth__span_is(rule, "gated") || berth__span_is(rule, "gated_delta");
  if (!has_delta && !has_gate && !berth__span_is(rule, "linear"))
    return berth__fail(err, BERTH_MALFORMED, "there is no update_rule '%.*s'", BERTH__SPAN_TEXT(rule));
  if ((berth__onnx_in(call, LA_DECAY) != BERTH_VALUE_NONE) != has_gate ||
      (berth__onnx_in(call, LA_BETA) != BERTH_VALUE_NONE) != has_delta)
    return berth__fail(err, BERTH_MALFORMED, "its decay and beta do not go with the update_rule '%.*s'",
                       BERTH__SPAN_TEXT(rule));
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
    return berth__fail(err, BERTH_MALFORMED, "%lld heads of queries do not share %lld of keys evenly", (long long)heads,
                       (long long)kv_heads);
  for (size_t i = LA_Q; i <= LA_BETA; i++)
    if (i != LA_STATE && berth__onnx_in(call, i) != BERTH_VALUE_NONE && berth__onnx_shape(call, call->in[i])->rank != 3)
      return berth__fail(err, BERTH_MALFORMED, "operand %zu has rank %u, expected 3", i,
                         berth__onnx_shape(call, call->in[i])->rank);
  return BERTH_OK;
}

static berth_value linear_scaled(berth__onnx_chain *c, berth_value q) {
  const double scale = berth__onnx_float(c->call, "scale", 0);
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  if (scale != 0) return berth__chain_with(c, "mul", q, scale);
  berth_value size = berth__chain_cast(c, berth__chain_extent(c, q, 4), berth__onnx_value_type(c->call, q));
  return berth__chain_binary(c, "mul", q, berth__chain_unary(c, "rsqrt", size));
}

static berth_status convert_linear_attention(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  const int64_t heads = berth__onnx_int(call, "q_num_heads", 0), kv_heads = berth__onnx_int(call, "kv_num_heads", 0);
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  BERTH__TRY(linear_check(call, heads, kv_heads, err));
  const berth_value past = berth__onnx_in(call, LA_STATE), decay = berth__onnx_in(call, LA_DECAY);
  const berth_type type = berth__onnx_value_type(call, call->in[LA_Q]), wide = berth__onnx_wide(type);
  linear_attention a = {.q = linear_scaled(&c, linear_split(&c, call->in[LA_Q], wide, kv_heads, heads / kv_heads, -1)),
                        .k = linear_split(&c, call->in[LA_K], wide, kv_heads, -1, 1),
                        .v = linear_split(&c, call->in[LA_V], wide, kv_heads, 1, -1),
                        .decay = decay == BERTH_VALUE_NONE
                                     ? decay
                                     : berth__chain_unary(&c, "exp", linear_split(&c, decay, wide, kv_heads, -1, 1)),
                        .beta = linear_split(&c, berth__onnx_in(call, LA_BETA), wide, -1, 1, 1)};
  a.state = past != BERTH_VALUE_NONE ? berth__chain_cast(&c, past, wide) : linear_no_state(&c, &a, wide);
  BERTH__TRY(c.status);
  const int64_t steps = berth__onnx_shape(call, call->in[LA_Q])->dim[1];
  const berth_value out = berth__dim_is_fixed(steps) && steps >= 1 && steps <= FEW_STEPS
                              ? linear_unrolled(&c, &a, steps)
                              : linear_rolled(&c, &a);
  call->out[0] = berth__chain_cast(&c, out, type);
  if (berth__onnx_is_asked(call, 1))
    call->out[1] = berth__chain_cast(&c, a.state, past != BERTH_VALUE_NONE ? berth__onnx_value_type(call, past) : type);
  return c.status;
}

/* ---- CausalConvWithState ---- */

/* x [B, C, L] with k - 1 positions before it: those of the past, or zeros. */
static berth_value conv_with_past(berth__onnx_chain *c, berth_value x, berth_value past, int64_t before) {
  const int64_t pads[6] = {0, 0, before, 0, 0, 0};
  berth_attr axis = berth_attr_int("axis", 2);
  if (past == BERTH_VALUE_NONE) return berth__chain_listed(c, "pad", x, "pads", pads, 6);
  return berth__chain_emit(c, "concat", (berth_value[]){past, x}, 2, &axis, 1);
}

static berth_status convert_causal_conv(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  const berth__span activation = berth__onnx_string(call, "activation", "none");
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  const berth__shape *weight = berth__onnx_shape(call, call->in[1]);
  const bool has_silu = berth__span_is(activation, "silu") || berth__span_is(activation, "swish");
  if (!has_silu && !berth__span_is(activation, "none"))
    return berth__fail(err, BERTH_MALFORMED, "there is no activation '%.*s'", BERTH__SPAN_TEXT(activation));
  if (weight->rank != 3 || berth__onnx_shape(call, call->in[0])->rank != 3)
    return berth__fail(err, BERTH_MALFORMED, "its operands have the ranks %u and %u, expected 3",
                       berth__onnx_shape(call, call->in[0])->rank, weight->rank);
  if (!berth__dim_is_fixed(weight->dim[0]) || !berth__dim_is_fixed(weight->dim[2]) || weight->dim[2] < 1)
    return berth__onnx_unsupported(call, err, "weights of a shape that is not fixed are not supported");
  const int64_t before = weight->dim[2] - 1, channels = weight->dim[0]; /* adding a value may move the shape */
  const berth_value x = conv_with_past(&c, call->in[0], berth__onnx_in(call, 3), before);
  const berth_value in[3] = {x, call->in[1], berth__onnx_in(call, 2)};
  berth_attr group = berth_attr_int("group", channels);
  berth_value out = berth__chain_emit(&c, "conv", in, in[2] == BERTH_VALUE_NONE ? 2 : 3, &group, 1);
  call->out[0] = has_silu ? berth__chain_unary(&c, "silu", out) : out;
  if (berth__onnx_is_asked(call, 1))
    call->out[1] = berth__chain_slice(&c, x, 2, before == 0 ? INT64_MAX : -before, INT64_MAX);
  return c.status;
}

const berth__onnx_handler berth__onnx_linear_attention[] = {
    {"CausalConvWithState", convert_causal_conv, NULL},
    {"LinearAttention", convert_linear_attention, NULL},
    {NULL, NULL, NULL},
};
