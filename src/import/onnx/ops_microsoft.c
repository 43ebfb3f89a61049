/* com.microsoft: the fused ops that ONNX Runtime's optimiser writes into files, decomposed again. */
#include "import/onnx/chain.h"
#include "import/onnx/compose.h"

#define STANDARD_OPSET 17 /* opset of the ops that they are decomposed into */

/* ---- Activations ---- */

static berth_status convert_bias_gelu(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  berth_value x = call->in[0];
  if (berth__onnx_in(call, 1) != BERTH_VALUE_NONE) x = berth__chain_binary(&c, "add", x, call->in[1]);
  call->out[0] = berth__chain_unary(&c, call->handler->berth_op, x);
  return c.status;
}

static berth_status convert_quick_gelu(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  berth_value scaled = berth__chain_with(&c, "mul", call->in[0], berth__onnx_float(call, "alpha", 1.702));
  call->out[0] = berth__chain_binary(&c, "mul", call->in[0], berth__chain_unary(&c, "sigmoid", scaled));
  return c.status;
}

/* ---- Products ---- */

static berth_value permute(berth__onnx_chain *c, berth_value x, bool moves_batch, bool swaps) {
  int64_t perm[BERTH_MAX_RANK];
  const uint32_t rank = berth__onnx_shape(c->call, x)->rank;
  if (rank < 2 || (!moves_batch && !swaps)) return x;
  for (uint32_t i = 0; i < rank; i++) perm[i] = i;
  if (moves_batch)
    for (uint32_t i = 0; i + 1 < rank; i++) perm[i] = i + 2 < rank ? i + 1 : 0;
  if (swaps) {
    int64_t last = perm[rank - 1];
    perm[rank - 1] = perm[rank - 2];
    perm[rank - 2] = last;
  }
  return berth__chain_listed(c, "transpose", x, "perm", perm, rank);
}

static berth_status convert_fused_matmul(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  berth_value a =
      permute(&c, call->in[0], berth__onnx_int(call, "transBatchA", 0) != 0, berth__onnx_int(call, "transA", 0) != 0);
  berth_value b =
      permute(&c, call->in[1], berth__onnx_int(call, "transBatchB", 0) != 0, berth__onnx_int(call, "transB", 0) != 0);
  double alpha = berth__onnx_float(call, "alpha", 1);
  call->out[0] = berth__chain_binary(&c, "matmul", a, b);
  if (alpha != 1) call->out[0] = berth__chain_with(&c, "mul", call->out[0], alpha);
  return c.status;
}

/* The activation that was fused into a product, with its parameters. */
static berth_status onnx_microsoft_activate(berth__onnx_call *call, const char *attr, const float *numbers, size_t n,
                                            berth_error *err) {
  static const char *const plain[][2] = {{"Relu", "relu"}, {"Tanh", "tanh"}, {"Sigmoid", "sigmoid"}};
  berth__onnx_chain c = {call, err, BERTH_OK};
  berth__span name = berth__onnx_string(call, attr, "");
  if (name.size == 0) return BERTH_OK;
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    if (berth__span_is(name, plain[i][0])) return berth__onnx_unary(call, plain[i][1], call->out[0], call->out, err);
  double first = n > 0 ? (double)numbers[0] : 0, second = n > 1 ? (double)numbers[1] : 0;
  berth_value x = call->out[0];
  if (berth__span_is(name, "Clip") && n == 2) {
    berth_attr attrs[] = {berth_attr_float("min", first), berth_attr_float("max", second)};
    call->out[0] = berth__chain_emit(&c, "clamp", &x, 1, attrs, 2);
  } else if (berth__span_is(name, "LeakyRelu")) {
    berth_value slope = berth__chain_with(&c, "mul", x, n > 0 ? first : 0.01);
    berth_value is_low = berth__chain_with(&c, "lt", x, 0);
    call->out[0] = berth__chain_where(&c, is_low, slope, x);
  } else if (berth__span_is(name, "HardSigmoid") && n == 2) {
    berth_attr attrs[] = {berth_attr_float("min", 0), berth_attr_float("max", 1)};
    x = berth__chain_with(&c, "add", berth__chain_with(&c, "mul", x, first), second);
    call->out[0] = berth__chain_emit(&c, "clamp", &x, 1, attrs, 2);
  } else {
    return berth__onnx_unsupported(call, err, "the activation '%.*s' is not supported here",
                                   (int)(name.size > 60 ? 60 : name.size), (const char *)name.data);
  }
  return c.status;
}

static berth_status convert_fused_conv(berth__onnx_call *call, berth_error *err) {
  const berth__onnx_attr *params = berth__onnx_find(call, "activation_params");
  berth_value added = berth__onnx_in(call, 3);
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  BERTH__TRY(
      berth__onnx_as(call, "Conv", STANDARD_OPSET, call->in, call->n_in > 3 ? 3 : call->n_in, call->out, 1, err));
  if (added != BERTH_VALUE_NONE) BERTH__TRY(berth__onnx_binary(call, "add", call->out[0], added, call->out, err));
  return onnx_microsoft_activate(call, "activation", params != NULL ? params->floats : NULL,
                                 params != NULL ? params->n_floats : 0, err);
}

static berth_status convert_fused_gemm(berth__onnx_call *call, berth_error *err) {
  const float numbers[] = {(float)berth__onnx_float(call, "activation_alpha", 0.01),
                           (float)berth__onnx_float(call, "activation_beta", 0)};
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  BERTH__TRY(berth__onnx_as(call, "Gemm", STANDARD_OPSET, call->in, call->n_in, call->out, 1, err));
  return onnx_microsoft_activate(call, "activation", numbers, 2, err);
}

/* ---- Norms ---- */

static berth_value norm(berth__onnx_chain *c, const char *op, berth_value x, berth_value scale, berth_value bias,
                        double epsilon) {
  const berth_value in[3] = {x, scale, bias};
  berth_attr attr = berth_attr_float("epsilon", epsilon);
  return berth__chain_emit(c, op, in, bias != BERTH_VALUE_NONE ? 3 : 2, &attr, 1);
}

static berth_value onnx_microsoft_plus(berth__onnx_chain *c, berth_value a, berth_value b) {
  return b == BERTH_VALUE_NONE ? a : berth__chain_binary(c, "add", a, b);
}

/* The two forms: layer_norm has a beta before the bias that is added to the sum, rms_norm has none. */
static berth_status convert_skip_norm(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  bool is_rms = strcmp(call->handler->berth_op, "rms_norm") == 0;
  berth_value beta = is_rms ? BERTH_VALUE_NONE : berth__onnx_in(call, 3);
  berth_value sum = onnx_microsoft_plus(&c, berth__chain_binary(&c, "add", call->in[0], call->in[1]),
                                        berth__onnx_in(call, is_rms ? 3 : 4));
  call->out[0] = norm(&c, call->handler->berth_op, sum, call->in[2], beta, berth__onnx_float(call, "epsilon", 1e-12));
  berth__onnx_set(call, 3, sum);
  return c.status;
}

static berth_status convert_simplified_norm(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  berth_attr attrs[] = {berth_attr_int("axis", berth__onnx_int(call, "axis", -1)),
                        berth_attr_float("epsilon", berth__onnx_float(call, "epsilon", 1e-5))};
  return berth__onnx_emit(call, "rms_norm", call->in, 2, attrs, 2, call->out, 1, err);
}

static berth_value embed(berth__onnx_chain *c, berth_value table, berth_value ids) {
  return berth__chain_binary(c, "embedding", table, ids);
}

/* How many elements of each row the mask lets through, as i32. */
static berth_value mask_lengths(berth__onnx_chain *c, berth_value mask, berth_value ids) {
  int64_t last = -1;
  berth_attr attrs[] = {berth_attr_ints("axes", &last, 1), berth_attr_int("keepdims", 0)};
  if (mask == BERTH_VALUE_NONE) {
    berth_value counts = berth__chain_emit(c, "reduce_sum", &ids, 1, attrs, 2);
    return berth__chain_cast(c, berth__chain_with(c, "mul", counts, 0), BERTH_I32);
  }
  berth_value counts = berth__chain_emit(c, "reduce_sum", &mask, 1, attrs, 2);
  return berth__chain_cast(c, counts, BERTH_I32);
}

static berth_status convert_embed_norm(berth__onnx_call *call, berth_error *err) {
  enum {
    IDS,
    SEGMENTS,
    WORDS,
    POSITIONS,
    SEGMENT_TABLE,
    GAMMA,
    BETA,
    MASK,
    POSITION_IDS
  };
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  berth_value ids = call->in[IDS], gamma = berth__onnx_in(call, GAMMA), at = berth__onnx_in(call, POSITION_IDS);
  berth_value words = berth__onnx_in(call, WORDS), positions = berth__onnx_in(call, POSITIONS);
  if (words == BERTH_VALUE_NONE || positions == BERTH_VALUE_NONE || gamma == BERTH_VALUE_NONE)
    return berth__fail(err, BERTH_MALFORMED, "a table or the scale is missing");
  if (at == BERTH_VALUE_NONE) at = berth__chain_count(&c, berth__chain_extent(&c, ids, 1));
  berth_value sum = berth__chain_binary(&c, "add", embed(&c, words, ids), embed(&c, positions, at));
  if (berth__onnx_in(call, SEGMENTS) != BERTH_VALUE_NONE && berth__onnx_in(call, SEGMENT_TABLE) != BERTH_VALUE_NONE)
    sum = berth__chain_binary(&c, "add", sum, embed(&c, call->in[SEGMENT_TABLE], call->in[SEGMENTS]));
  call->out[0] =
      norm(&c, "layer_norm", sum, gamma, berth__onnx_in(call, BETA), berth__onnx_float(call, "epsilon", 1e-12));
  if (berth__onnx_is_asked(call, 1)) call->out[1] = mask_lengths(&c, berth__onnx_in(call, MASK), ids);
  berth__onnx_set(call, 2, sum);
  return c.status;
}

/* ---- Same as the standard op ---- */

static berth_status convert_as_standard(berth__onnx_call *call, berth_error *err) {
  return berth__onnx_as(call, call->handler->berth_op, STANDARD_OPSET, call->in, call->n_in, call->out, call->n_out,
                        err);
}

const berth__onnx_handler berth__onnx_microsoft[] = {
    {"BiasGelu", convert_bias_gelu, "gelu"},
    {"EmbedLayerNormalization", convert_embed_norm, NULL},
    {"FastGelu", convert_bias_gelu, "gelu_tanh"},
    {"FusedConv", convert_fused_conv, NULL},
    {"FusedGemm", convert_fused_gemm, NULL},
    {"FusedMatMul", convert_fused_matmul, NULL},
    {"Gelu", convert_bias_gelu, "gelu"},
    {"GridSample", convert_as_standard, "GridSample"},
    {"LayerNormalization", convert_as_standard, "LayerNormalization"},
    {"DequantizeLinear", convert_as_standard, "DequantizeLinear"},
    {"QuantizeLinear", convert_as_standard, "QuantizeLinear"},
    {"QuickGelu", convert_quick_gelu, NULL},
    {"Range", convert_as_standard, "Range"},
    {"SimplifiedLayerNormalization", convert_simplified_norm, NULL},
    {"SkipLayerNormalization", convert_skip_norm, "layer_norm"},
    {"SkipSimplifiedLayerNormalization", convert_skip_norm, "rms_norm"},
    {"TransposeMatMul", convert_fused_matmul, NULL},
    {"Trilu", convert_as_standard, "Trilu"},
    {NULL, NULL, NULL},
};

/* ONNX Runtime registers this one in ONNX's own domain. */
const berth__onnx_handler berth__onnx_unofficial[] = {
    {"SimplifiedLayerNormalization", convert_simplified_norm, NULL},
    {NULL, NULL, NULL},
};
