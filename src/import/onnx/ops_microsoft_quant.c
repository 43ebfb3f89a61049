/* com.microsoft, quantised: dequantised, computed in float and quantised again, which gives the same integers except
 * for values halfway between two; products of integers stay integer. */
#include "import/onnx/chain.h"
#include "import/onnx/compose.h"
#include "import/onnx/recurrent.h"
#include "ops/recurrent.h"

#define STANDARD_OPSET 17

static berth_value as_of(berth__onnx_chain *c, const char *op, int64_t opset, const berth_value *in, size_t n_in) {
  berth_value out = BERTH_VALUE_NONE;
  while (n_in > 0 && in[n_in - 1] == BERTH_VALUE_NONE) n_in--;
  if (c->status == BERTH_OK) c->status = berth__onnx_as(c->call, op, opset, in, n_in, &out, 1, c->err);
  return out;
}

static berth_value as(berth__onnx_chain *c, const char *op, const berth_value *in, size_t n_in) {
  return as_of(c, op, STANDARD_OPSET, in, n_in);
}

static berth_value dequantize(berth__onnx_chain *c, size_t first) {
  const berth_value in[3] = {berth__onnx_in(c->call, first), berth__onnx_in(c->call, first + 1),
                             berth__onnx_in(c->call, first + 2)};
  return as(c, "DequantizeLinear", in, 3);
}

/* The scale and zero point are at `first`. */
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

/* One operand with its scale and zero point, the same for the result, and between them a standard op with the node's
 * attributes. */
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

/* The node's opset decides the meaning of Softmax: before 13 it was over all axes from `axis` on. Here the default is
 * the last axis whatever the opset, and over one axis both are the same. */
static berth_status onnx_microsoft_quant_convert_softmax(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  BERTH__TRY(call->n_in >= 4 ? BERTH_OK : berth__fail(err, BERTH_MALFORMED, "it has %zu operands", call->n_in));
  const bool has_axis = berth__onnx_find(call, "axis") != NULL;
  const int64_t opset = has_axis ? berth__onnx_int(call, "opset", STANDARD_OPSET) : STANDARD_OPSET;
  berth_value x = dequantize(&c, 0);
  call->out[0] = quantize(&c, as_of(&c, "Softmax", opset, &x, 1), 3);
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

/* An integer product as float: times scale, plus bias. */
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

/* Operands of QGemm; C and everything after it is optional. */
enum {
  QGEMM_A,
  QGEMM_A_SCALE,
  QGEMM_A_ZERO,
  QGEMM_B,
  QGEMM_B_SCALE,
  QGEMM_B_ZERO,
  QGEMM_C,
  QGEMM_Y_SCALE
};

static berth_value qgemm_operand(berth__onnx_chain *c, berth_value value, const char *turns) {
  if (berth__onnx_int(c->call, turns, 0) == 0) return value;
  return berth__chain_listed(c, "transpose", value, "perm", (int64_t[]){1, 0}, 2);
}

/* C holds integers with the same scale as the sums. Without a scale of its own, the result is float. */
static berth_status convert_qgemm(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 6, err));
  for (size_t i = QGEMM_A; i <= QGEMM_B; i += QGEMM_B)
    if (berth__onnx_shape(call, call->in[i])->rank != 2)
      return berth__fail(err, BERTH_MALFORMED, "operand %zu must have rank 2", i);
  const berth_value in[4] = {qgemm_operand(&c, call->in[QGEMM_A], "transA"),
                             qgemm_operand(&c, call->in[QGEMM_B], "transB"), call->in[QGEMM_A_ZERO],
                             call->in[QGEMM_B_ZERO]};
  berth_value sums = as(&c, "MatMulInteger", in, 4), scale;
  if (berth__onnx_in(call, QGEMM_C) != BERTH_VALUE_NONE) sums = berth__chain_binary(&c, "add", sums, call->in[QGEMM_C]);
  scale = berth__chain_binary(&c, "mul", call->in[QGEMM_A_SCALE], call->in[QGEMM_B_SCALE]);
  const double alpha = berth__onnx_float(call, "alpha", 1);
  if (alpha != 1) scale = berth__chain_with(&c, "mul", scale, alpha);
  const berth_value product = berth__chain_binary(&c, "mul", berth__chain_cast(&c, sums, BERTH_F32), scale);
  const bool is_float = berth__onnx_in(call, QGEMM_Y_SCALE) == BERTH_VALUE_NONE;
  call->out[0] = is_float ? product : quantize(&c, product, QGEMM_Y_SCALE);
  return c.status;
}

/* ---- Weights of a few bits ---- */

/* Unpacks fields of `bits` bits from bytes, lowest first: [..., n] becomes [..., n 8 / bits]. */
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

/* Weights of four bits stay in blocks, if groups of 32 share a scale. A product may make bytes of x where the node says
 * that this is accurate enough, as ONNX Runtime does. */
static bool few_bits_fit_blocks(const berth__onnx_call *call, const packed *p) {
  if (p->bits != 4 || p->block % 32 != 0 || p->k % 32 != 0) return false;
  const berth_value zero = berth__onnx_in(call, 3);
  return berth__onnx_is_weight(call, call->in[1]) && berth__onnx_is_weight(call, call->in[2]) &&
         (zero == BERTH_VALUE_NONE || berth__onnx_is_weight(call, zero));
}

static berth_value few_bits_blocks(berth__onnx_chain *c, const packed *p) {
  const berth_attr columns = berth_attr_int("columns", p->k),
                   exact = berth_attr_int("exact", berth__onnx_int(c->call, "accuracy_level", 0) != 4);
  const int64_t fields[] = {p->n, p->blocks, p->block / 2}, scales[] = {p->n, p->blocks};
  berth_value in[3] = {berth__chain_reshape(c, c->call->in[1], fields, 3),
                       berth__chain_reshape(c, c->call->in[2], scales, 2)};
  const bool has_zero = berth__onnx_in(c->call, 3) != BERTH_VALUE_NONE;
  if (has_zero) in[2] = berth__chain_reshape(c, c->call->in[3], (int64_t[]){p->n, -1}, 2);
  const berth_value blocks = berth__chain_emit(c, "pack_blocks", in, has_zero ? 3 : 2, &columns, 1);
  return berth__chain_emit(c, "unpack", &blocks, 1, &exact, 1);
}

static berth_value few_bits_numbers(berth__onnx_chain *c, const packed *p) {
  const berth__onnx_call *call = c->call;
  const berth_value bytes = berth__chain_reshape(c, call->in[1], (int64_t[]){p->n, -1}, 2);
  berth_value fields = berth__chain_cast(c, unpack(c, bytes, p->bits), p->type);
  fields = berth__chain_reshape(c, fields, (int64_t[]){p->n, p->blocks, p->block}, 3);
  const berth_value scales = berth__chain_reshape(c, call->in[2], (int64_t[]){p->n, p->blocks, 1}, 3);
  berth_value weights = berth__chain_binary(c, "sub", fields, zero_points(c, p, berth__onnx_in(call, 3)));
  weights = berth__chain_binary(c, "mul", weights, scales);
  return berth__chain_slice(c, berth__chain_reshape(c, weights, (int64_t[]){p->n, -1}, 2), 1, 0, p->k);
}

static berth_status convert_few_bits(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  packed p;
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  BERTH__TRY(read_packed(call, &p, err));
  const bool is_blocks = few_bits_fit_blocks(call, &p);
  const berth_value x = is_blocks ? berth__chain_cast(&c, call->in[0], BERTH_F32) : call->in[0];
  berth_value weights = is_blocks ? few_bits_blocks(&c, &p) : few_bits_numbers(&c, &p);
  weights = berth__chain_listed(&c, "transpose", weights, "perm", (int64_t[]){1, 0}, 2);
  call->out[0] = berth__chain_binary(&c, "matmul", x, weights);
  if (is_blocks) call->out[0] = berth__chain_cast(&c, call->out[0], p.type);
  if (berth__onnx_in(call, 5) != BERTH_VALUE_NONE)
    call->out[0] = berth__chain_binary(&c, "add", call->out[0], call->in[5]);
  return c.status;
}

/* ---- LSTM ---- */

enum { /* operands of DynamicQuantizeLSTM; the others are those of LSTM */
  LSTM_W = 1,
  LSTM_R,
  LSTM_W_SCALE = 8,
  LSTM_W_ZERO,
  LSTM_R_SCALE,
  LSTM_R_ZERO,
  LSTM_OPERANDS
};

static bool lstm_is_zero(const berth__onnx_call *call, berth_value value) {
  int64_t entries[64];
  uint32_t count;
  if (!berth__onnx_constant_ints(call, value, entries, 64, &count)) return false;
  for (uint32_t i = 0; i < count; i++)
    if (entries[i] != 0) return false;
  return true;
}

/* [D] or [D, 4 H] as one entry per column of a product over all directions: [D 4 H], or [1]. */
static berth_value lstm_entries(berth__onnx_chain *c, berth_value x, const int64_t w[3]) {
  const int64_t last = 1;
  if (w[0] == 1 || berth__onnx_shape(c->call, x)->rank == 2) return berth__chain_reshape(c, x, (int64_t[]){-1}, 1);
  const berth_attr shape = berth_attr_ints("shape", (int64_t[]){w[0], w[2]}, 2);
  x = berth__chain_listed(c, "unsqueeze", x, "axes", &last, 1);
  return berth__chain_reshape(c, berth__chain_emit(c, "expand", &x, 1, &shape, 1), (int64_t[]){-1}, 1);
}

/* The inputs' share in the gates: [S, D, B, 4 H]. x is quantised as a whole; one product covers all directions. */
static berth_value lstm_gates(berth__onnx_chain *c, const int64_t w[3]) {
  const berth_value *in = c->call->in;
  berth_value x[3] = {BERTH_VALUE_NONE, BERTH_VALUE_NONE, BERTH_VALUE_NONE}, weight = in[LSTM_W];
  if (c->status == BERTH_OK)
    c->status = berth__onnx_as(c->call, "DynamicQuantizeLinear", STANDARD_OPSET, in, 1, x, 3, c->err);
  if (w[0] > 1) weight = berth__chain_listed(c, "transpose", weight, "perm", (int64_t[]){1, 0, 2}, 3);
  weight = berth__chain_reshape(c, weight, (int64_t[]){w[1], w[0] * w[2]}, 2);
  const berth_value scale = lstm_entries(c, in[LSTM_W_SCALE], w);
  const berth_value zero =
      lstm_is_zero(c->call, in[LSTM_W_ZERO]) ? BERTH_VALUE_NONE : lstm_entries(c, in[LSTM_W_ZERO], w);
  berth_value gates = scaled_product(c, x[0], weight, x[2], zero, x[1], scale, BERTH_VALUE_NONE);
  gates = berth__chain_reshape(c, gates, (int64_t[]){0, 0, w[0], w[2]}, 4);
  return berth__chain_listed(c, "transpose", gates, "perm", (int64_t[]){0, 2, 1, 3}, 4);
}

static berth_status lstm_check(const berth__onnx_call *call, berth_error *err) {
  for (size_t i = LSTM_W_SCALE; i < LSTM_OPERANDS; i++)
    if (berth__onnx_in(call, i) == BERTH_VALUE_NONE)
      return berth__fail(err, BERTH_MALFORMED, "operand %zu is missing", i);
  if (berth__onnx_int(call, "layout", 0) != 0)
    return berth__onnx_unsupported(call, err, "the batch as the first axis is not supported");
  if (berth__onnx_shape(call, call->in[0])->rank != 3 || berth__onnx_shape(call, call->in[LSTM_W])->rank != 3 ||
      berth__onnx_shape(call, call->in[LSTM_R])->rank != 3)
    return berth__fail(err, BERTH_MALFORMED, "X, W and R must have rank 3");
  for (uint32_t i = 0; i < 3; i++)
    if (!berth__dim_is_fixed(berth__onnx_shape(call, call->in[LSTM_W])->dim[i]))
      return berth__onnx_unsupported(call, err, "W has an extent that is not fixed");
  return BERTH_OK;
}

/* As in ONNX Runtime: x is quantised as a whole, and h before each step. */
static berth_status convert_lstm(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  berth_value in[BERTH__QLSTM_ZERO + 1];
  size_t n_in = BERTH__QLSTM_ZERO + 1;
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  BERTH__TRY(lstm_check(call, err));
  const berth__shape w = *berth__onnx_shape(call, call->in[LSTM_W]);
  memcpy(in, call->in, LSTM_W_SCALE * sizeof *in);
  in[BERTH__QLSTM_GATES] = lstm_gates(&c, w.dim);
  in[BERTH__QLSTM_SCALE] = call->in[LSTM_R_SCALE];
  in[BERTH__QLSTM_RECURRENCE] = berth__chain_listed(&c, "transpose", call->in[LSTM_R], "perm", (int64_t[]){0, 2, 1}, 3);
  in[BERTH__QLSTM_ZERO] = lstm_is_zero(call, call->in[LSTM_R_ZERO]) ? BERTH_VALUE_NONE : call->in[LSTM_R_ZERO];
  while (n_in > 3 && in[n_in - 1] == BERTH_VALUE_NONE) n_in--;
  BERTH__TRY(c.status);
  return berth__onnx_recurrent_layer(call, "qlstm", in, n_in, err);
}

const berth__onnx_handler berth__onnx_microsoft_quant[] = {
    {"DynamicQuantizeLSTM", convert_lstm, NULL},
    {"DynamicQuantizeMatMul", convert_dynamic_matmul, NULL},
    {"MatMulIntegerToFloat", convert_integer_matmul, NULL},
    {"MatMulNBits", convert_few_bits, NULL},
    {"QGemm", convert_qgemm, NULL},
    {"QLinearAdd", onnx_microsoft_quant_convert_binary, "add"},
    {"QLinearAveragePool", convert_between, "AveragePool"},
    {"QLinearConcat", onnx_microsoft_quant_convert_concat, NULL},
    {"QLinearGlobalAveragePool", convert_between, "GlobalAveragePool"},
    {"QLinearLeakyRelu", convert_between, "LeakyRelu"},
    {"QLinearMul", onnx_microsoft_quant_convert_binary, "mul"},
    {"QLinearSigmoid", convert_between, "Sigmoid"},
    {"QLinearSoftmax", onnx_microsoft_quant_convert_softmax, NULL},
    {NULL, NULL, NULL},
};
