/* com.microsoft, quantised: dequantised, computed in float and quantised again, which gives the same integers but for
 * values that lie on the edge between two; products of integers stay what they are. */
#include "import/onnx/chain.h"
#include "import/onnx/compose.h"
#include "import/onnx/recurrent.h"

#define STANDARD_OPSET 17

static berth_value as(berth__onnx_chain *c, const char *op, const berth_value *in, size_t n_in) {
  berth_value out = BERTH_VALUE_NONE;
  while (n_in > 0 && in[n_in - 1] == BERTH_VALUE_NONE) n_in--;
  if (c->status == BERTH_OK) c->status = berth__onnx_as(c->call, op, STANDARD_OPSET, in, n_in, &out, 1, c->err);
  return out;
}

static berth_value dequantize(berth__onnx_chain *c, size_t first) {
  const berth_value in[3] = {berth__onnx_in(c->call, first), berth__onnx_in(c->call, first + 1),
                             berth__onnx_in(c->call, first + 2)};
  return as(c, "DequantizeLinear", in, 3);
}

/* The scale and zero point stand at `first`. */
static berth_value quantize(berth__onnx_chain *c, berth_value x, size_t first) {
  const berth_value in[3] = {x, berth__onnx_in(c->call, first), berth__onnx_in(c->call, first + 1)};
  return as(c, "QuantizeLinear", in, 3);
}

/* ---- Element by element and pools ---- */

static berth_status onnx_microsoft_quant_convert_binary(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  BERTH__TRY(call->n_in >= 7 ? BERTH_OK : berth__fail(err, BERTH_MALFORMED, "it has %zu operands", call->n_in));
  call->out[0] =
      quantize(&c, berth__chain_binary(&c, call->handler->berth_op, dequantize(&c, 0), dequantize(&c, 3)), 6);
  return c.status;
}

/* One operand with its scale and zero point, the same for the result, and a standard op between them that sees the
 * node's attributes. */
static berth_status convert_between(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  BERTH__TRY(call->n_in >= 4 ? BERTH_OK : berth__fail(err, BERTH_MALFORMED, "it has %zu operands", call->n_in));
  if (berth__onnx_int(call, "channels_last", 0) != 0)
    return berth__onnx_unsupported(call, err, "channels as the last axis are not supported");
  berth_value x = dequantize(&c, 0);
  call->out[0] = quantize(&c, as(&c, call->handler->berth_op, &x, 1), 3);
  return c.status;
}

static berth_status onnx_microsoft_quant_convert_concat(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 5, err));
  size_t n = (call->n_in - 2) / 3;
  berth_value *parts = berth__alloc_array(call->graph->ctx, n, sizeof *parts);
  if (parts == NULL) return berth__fail_nomem(err, "a concat");
  for (size_t i = 0; i < n; i++) parts[i] = dequantize(&c, 2 + 3 * i);
  berth_attr attr = berth_attr_int("axis", berth__onnx_int(call, "axis", 0));
  call->out[0] = quantize(&c, berth__chain_emit(&c, "concat", parts, n, &attr, 1), 0);
  berth__free(call->graph->ctx, parts);
  return c.status;
}

/* ---- Products ---- */

/* A product of integers as float: * scale + bias. */
static berth_value scaled_product(berth__onnx_chain *c, berth_value a, berth_value b, berth_value a_zero,
                                  berth_value b_zero, berth_value a_scale, berth_value b_scale, berth_value bias) {
  const berth_value in[4] = {a, b, a_zero, b_zero};
  berth_value product = berth__chain_cast(c, as(c, "MatMulInteger", in, 4), BERTH_F32);
  product = berth__chain_binary(c, "mul", product, berth__chain_binary(c, "mul", a_scale, b_scale));
  return bias != BERTH_VALUE_NONE ? berth__chain_binary(c, "add", product, bias) : product;
}

static berth_status convert_dynamic_matmul(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  berth_value a[3];
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  BERTH__TRY(berth__onnx_as(call, "DynamicQuantizeLinear", STANDARD_OPSET, call->in, 1, a, 3, err));
  call->out[0] =
      scaled_product(&c, a[0], call->in[1], a[2], berth__onnx_in(call, 3), a[1], call->in[2], berth__onnx_in(call, 4));
  return c.status;
}

static berth_status convert_integer_matmul(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 4, err));
  call->out[0] = scaled_product(&c, call->in[0], call->in[1], berth__onnx_in(call, 4), berth__onnx_in(call, 5),
                                call->in[2], call->in[3], berth__onnx_in(call, 6));
  return c.status;
}

/* ---- Weights of a few bits ---- */

/* The fields of `bits` bits in bytes, the lowest first: [..., n] becomes [..., n 8 / bits]. */
static berth_value unpack(berth__onnx_chain *c, berth_value bytes, int64_t bits) {
  berth_value parts[8];
  const int64_t last = -1;
  int64_t n = 8 / bits, flat[2] = {0, -1};
  if (bits == 8) return bytes;
  for (int64_t i = 0; i < n; i++) {
    berth_value moved = i == 0 ? bytes : berth__chain_with(c, "div", bytes, (double)(1 << (bits * i)));
    parts[i] = berth__chain_with(c, "and", moved, (double)((1 << bits) - 1));
    parts[i] = berth__chain_listed(c, "unsqueeze", parts[i], "axes", &last, 1);
  }
  berth_attr axis = berth_attr_int("axis", -1);
  return berth__chain_reshape(c, berth__chain_emit(c, "concat", parts, (size_t)n, &axis, 1), flat, 2);
}

typedef struct packed {
  int64_t k, n, bits, block, blocks;
  berth_type type;
} packed;

static berth_value zero_points(berth__onnx_chain *c, const packed *p, berth_value given) {
  if (given == BERTH_VALUE_NONE) return berth__chain_scalar(c, p->type, (double)(1 << (p->bits - 1)));
  berth_value rows = berth__chain_reshape(c, given, (int64_t[]){p->n, -1}, 2);
  if (c->status == BERTH_OK && berth__onnx_value_type(c->call, given) == BERTH_U8) {
    rows = berth__chain_slice(c, unpack(c, rows, p->bits), 1, 0, p->blocks);
    rows = berth__chain_cast(c, rows, p->type);
  }
  return berth__chain_reshape(c, rows, (int64_t[]){p->n, p->blocks, 1}, 3);
}

static berth_status read_packed(const berth__onnx_call *call, packed *p, berth_error *err) {
  *p = (packed){.k = berth__onnx_int(call, "K", 0),
                .n = berth__onnx_int(call, "N", 0),
                .bits = berth__onnx_int(call, "bits", 4),
                .block = berth__onnx_int(call, "block_size", 0),
                .type = berth__onnx_value_type(call, call->in[0])};
  if (p->k < 1 || p->n < 1 || p->block < 1 || p->block > ((int64_t)1 << 31) || p->k > ((int64_t)1 << 40))
    return berth__fail(err, BERTH_MALFORMED, "K, N or block_size is missing or out of range");
  if (p->bits != 2 && p->bits != 4 && p->bits != 8)
    return berth__onnx_unsupported(call, err, "weights of %lld bits are not supported", (long long)p->bits);
  if (berth__onnx_in(call, 4) != BERTH_VALUE_NONE)
    return berth__onnx_unsupported(call, err, "a group index is not supported");
  p->blocks = (p->k + p->block - 1) / p->block;
  return BERTH_OK;
}

static berth_status convert_few_bits(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  packed p;
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  BERTH__TRY(read_packed(call, &p, err));
  berth_value bytes = berth__chain_reshape(&c, call->in[1], (int64_t[]){p.n, -1}, 2);
  berth_value fields = berth__chain_cast(&c, unpack(&c, bytes, p.bits), p.type);
  fields = berth__chain_reshape(&c, fields, (int64_t[]){p.n, p.blocks, p.block}, 3);
  berth_value scales = berth__chain_reshape(&c, call->in[2], (int64_t[]){p.n, p.blocks, 1}, 3);
  berth_value weights = berth__chain_binary(&c, "sub", fields, zero_points(&c, &p, berth__onnx_in(call, 3)));
  weights = berth__chain_binary(&c, "mul", weights, scales);
  weights = berth__chain_slice(&c, berth__chain_reshape(&c, weights, (int64_t[]){p.n, -1}, 2), 1, 0, p.k);
  weights = berth__chain_listed(&c, "transpose", weights, "perm", (int64_t[]){1, 0}, 2);
  call->out[0] = berth__chain_binary(&c, "matmul", call->in[0], weights);
  if (berth__onnx_in(call, 5) != BERTH_VALUE_NONE)
    call->out[0] = berth__chain_binary(&c, "add", call->out[0], call->in[5]);
  return c.status;
}

/* ---- LSTM ---- */

/* [D, rows, 4 H] of integers as ONNX's [D, 4 H, rows]; scales and zero points are [D] or [D, 4 H]. */
static berth_value lstm_weights(berth__onnx_chain *c, berth_value x, berth_value scale, berth_value zero) {
  const int64_t middle = 1, both[2] = {1, 2};
  const bool is_each = berth__onnx_shape(c->call, scale)->rank < 2;
  berth_value weights = berth__chain_cast(c, x, BERTH_F32);
  berth_value parts[2] = {zero, scale};
  for (int i = 0; i < 2; i++)
    parts[i] = berth__chain_listed(c, "unsqueeze", parts[i], "axes", is_each ? both : &middle, is_each ? 2 : 1);
  weights = berth__chain_binary(c, "sub", weights, berth__chain_cast(c, parts[0], BERTH_F32));
  weights = berth__chain_binary(c, "mul", weights, parts[1]);
  return berth__chain_listed(c, "transpose", weights, "perm", (int64_t[]){0, 2, 1}, 3);
}

/* Only the weights are integers here: what goes round stays in float, which is closer to the model that was quantised.
 */
static berth_status convert_lstm(berth__onnx_call *call, berth_error *err) {
  enum {
    W = 1,
    R,
    FIRST_NUMBER = 8,
    N_NUMBERS = 4
  };
  berth__onnx_chain c = {call, err, BERTH_OK};
  berth_value in[FIRST_NUMBER];
  size_t n_in = FIRST_NUMBER;
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  for (size_t i = FIRST_NUMBER; i < FIRST_NUMBER + N_NUMBERS; i++)
    if (berth__onnx_in(call, i) == BERTH_VALUE_NONE)
      return berth__fail(err, BERTH_MALFORMED, "operand %zu is missing", i);
  memcpy(in, call->in, sizeof in);
  in[W] = lstm_weights(&c, call->in[W], call->in[FIRST_NUMBER], call->in[FIRST_NUMBER + 1]);
  in[R] = lstm_weights(&c, call->in[R], call->in[FIRST_NUMBER + 2], call->in[FIRST_NUMBER + 3]);
  while (n_in > 3 && in[n_in - 1] == BERTH_VALUE_NONE) n_in--;
  BERTH__TRY(c.status);
  return berth__onnx_recurrent_layer(call, "lstm", in, n_in, err);
}

const berth__onnx_handler berth__onnx_microsoft_quant[] = {
    {"DynamicQuantizeLSTM", convert_lstm, NULL},
    {"DynamicQuantizeMatMul", convert_dynamic_matmul, NULL},
    {"MatMulIntegerToFloat", convert_integer_matmul, NULL},
    {"MatMulNBits", convert_few_bits, NULL},
    {"QLinearAdd", onnx_microsoft_quant_convert_binary, "add"},
    {"QLinearAveragePool", convert_between, "AveragePool"},
    {"QLinearConcat", onnx_microsoft_quant_convert_concat, NULL},
    {"QLinearGlobalAveragePool", convert_between, "GlobalAveragePool"},
    {"QLinearLeakyRelu", convert_between, "LeakyRelu"},
    {"QLinearMul", onnx_microsoft_quant_convert_binary, "mul"},
    {"QLinearSigmoid", convert_between, "Sigmoid"},
    {"QLinearSoftmax", convert_between, "Softmax"},
    {NULL, NULL, NULL},
};
