/* Windows, Fourier transforms, mel weights. Windows and weights depend only on sizes, so they are folded. */
#include <math.h>

#include "import/onnx/chain.h"
#include "import/onnx/compose.h"

/* ---- Windows ---- */

/* cos(2 pi k n / length) for every n */
static berth_value cosines(berth__onnx_chain *c, berth_value n, berth_value length, double k) {
  berth_value turns = berth__chain_binary(c, "div", berth__chain_with(c, "mul", n, 2 * acos(-1.0) * k), length);
  return berth__chain_unary(c, "cos", turns);
}

/* a - b cos(2 pi n / length) + d cos(4 pi n / length) */
static berth_status window(berth__onnx_call *call, double a, double b, double d, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  berth_type type;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__onnx_named_type(call, "output_datatype", BERTH_F32, &type, err));
  berth_value size = call->in[0], length = berth__chain_cast(&c, size, BERTH_F64);
  if (berth__onnx_int(call, "periodic", 1) == 0) length = berth__chain_with(&c, "sub", length, 1);
  berth_value n = berth__chain_cast(&c, berth__chain_count(&c, size), BERTH_F64);
  berth_value sum = berth__chain_with(&c, "mul", cosines(&c, n, length, 1), -b);
  sum = berth__chain_with(&c, "add", sum, a);
  if (d != 0) sum = berth__chain_binary(&c, "add", sum, berth__chain_with(&c, "mul", cosines(&c, n, length, 2), d));
  berth__onnx_set(call, 0, berth__chain_cast(&c, sum, type));
  return c.status;
}

static berth_status convert_hann(berth__onnx_call *call, berth_error *err) { return window(call, 0.5, 0.5, 0, err); }
static berth_status convert_hamming(berth__onnx_call *call, berth_error *err) {
  return window(call, 25.0 / 46, 21.0 / 46, 0, err);
}
static berth_status convert_blackman(berth__onnx_call *call, berth_error *err) {
  return window(call, 0.42, 0.5, 0.08, err);
}

/* ---- Fourier transforms ---- */

/* Where the axis is: an attribute before opset 20, an operand since. */
/* An operand since opset 20; a constant one is as good as an attribute. */
static berth_status dft_axis(berth__onnx_call *call, int64_t *axis, bool *is_known, berth_error *err) {
  berth_value operand = berth__onnx_in(call, 2);
  uint32_t count = 1;
  *axis = call->opset < 20 ? berth__onnx_int(call, "axis", 1) : -2;
  *is_known = true;
  if (call->opset < 20 || operand == BERTH_VALUE_NONE) return BERTH_OK;
  BERTH__TRY(berth__graph_evaluate_value(call->graph, operand, err));
  *is_known = berth__onnx_constant_ints(call, operand, axis, 1, &count) && count == 1;
  return BERTH_OK;
}

static berth_status convert_dft(berth__onnx_call *call, berth_error *err) {
  int64_t axis;
  bool is_known;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(dft_axis(call, &axis, &is_known, err));
  const berth_value in[3] = {call->in[0], berth__onnx_in(call, 1), is_known ? BERTH_VALUE_NONE : call->in[2]};
  size_t n_in = 3;
  while (in[n_in - 1] == BERTH_VALUE_NONE) n_in--;
  berth_attr attrs[] = {berth_attr_int("inverse", berth__onnx_int(call, "inverse", 0)),
                        berth_attr_int("onesided", berth__onnx_int(call, "onesided", 0)), berth_attr_int("axis", axis)};
  return berth__onnx_emit(call, "dft", in, n_in, attrs, is_known ? 3 : 2, call->out, 1, err);
}

/* The frames of a signal [B, L, C], each of `length` and `step` after the previous one: [B, F, length, C]. */
static berth_value frames(berth__onnx_chain *c, berth_value signal, berth_value step, berth_value length) {
  berth_value rest = berth__chain_binary(c, "sub", berth__chain_extent(c, signal, 1), length);
  berth_value count = berth__chain_with(c, "add", berth__chain_binary(c, "div", rest, step), 1);
  berth_value starts = berth__chain_binary(c, "mul", berth__chain_count(c, count), step);
  int64_t last = 1;
  starts = berth__chain_listed(c, "unsqueeze", starts, "axes", &last, 1);
  berth_value at = berth__chain_binary(c, "add", starts, berth__chain_count(c, length));
  berth_attr axis = berth_attr_int("axis", 1);
  return berth__chain_emit(c, "gather", (berth_value[]){signal, at}, 2, &axis, 1);
}

static berth_status convert_stft(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  berth_value window = berth__onnx_in(call, 2), length = berth__onnx_in(call, 3);
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  if (window == BERTH_VALUE_NONE && length == BERTH_VALUE_NONE)
    return berth__fail(err, BERTH_MALFORMED, "it has neither a window nor a frame length");
  if (berth__onnx_shape(call, call->in[0])->rank != 3)
    return berth__fail(err, BERTH_MALFORMED, "the signal has rank %u, expected 3",
                       berth__onnx_shape(call, call->in[0])->rank);
  length = length == BERTH_VALUE_NONE ? berth__chain_extent(&c, window, 0) : berth__chain_cast(&c, length, BERTH_I64);
  berth_value parts = frames(&c, call->in[0], berth__chain_cast(&c, call->in[1], BERTH_I64), length);
  int64_t last = 1;
  if (window != BERTH_VALUE_NONE)
    parts = berth__chain_binary(&c, "mul", parts, berth__chain_listed(&c, "unsqueeze", window, "axes", &last, 1));
  berth_attr attrs[] = {berth_attr_int("axis", 2), berth_attr_int("onesided", berth__onnx_int(call, "onesided", 1))};
  call->out[0] = berth__chain_emit(&c, "dft", &parts, 1, attrs, 2);
  return c.status;
}

/* ---- Mel weights ---- */

static berth_value mel_of_hertz(berth__onnx_chain *c, berth_value hertz) {
  berth_value ratio = berth__chain_with(c, "add", berth__chain_with(c, "div", hertz, 700), 1);
  return berth__chain_with(c, "mul", berth__chain_unary(c, "log", ratio), 2595 / log(10));
}

static berth_value hertz_of_mel(berth__onnx_chain *c, berth_value mel) {
  berth_value power = berth__chain_unary(c, "exp", berth__chain_with(c, "mul", mel, log(10) / 2595));
  return berth__chain_with(c, "mul", berth__chain_with(c, "add", power, -1), 700);
}

/* The spectrogram bins where the bands begin, peak and end: bins + 2 of them, evenly spaced on the mel scale. */
static berth_value mel_edges(berth__onnx_chain *c, const berth_value *in) {
  berth_value low = mel_of_hertz(c, in[3]), high = mel_of_hertz(c, in[4]);
  berth_value points = berth__chain_with(c, "add", in[0], 2);
  berth_value step = berth__chain_binary(c, "div", berth__chain_binary(c, "sub", high, low), points);
  berth_value n = berth__chain_cast(c, berth__chain_count(c, points), BERTH_F64);
  berth_value mel = berth__chain_binary(c, "add", berth__chain_binary(c, "mul", n, step), low);
  berth_value scaled = berth__chain_binary(c, "mul", hertz_of_mel(c, mel), berth__chain_with(c, "add", in[1], 1));
  return berth__chain_unary(c, "floor", berth__chain_binary(c, "div", scaled, in[2]));
}

/* Triangles: from 0 at `lower` to 1 at `center` and back to 0 at `upper`; if the first side has no width, only the
 * peak. */
static berth_value triangles(berth__onnx_chain *c, berth_value row, berth_value lower, berth_value center,
                             berth_value upper) {
  berth_value width = berth__chain_binary(c, "sub", center, lower), fall = berth__chain_binary(c, "sub", upper, center);
  berth_value zero = berth__chain_scalar(c, BERTH_F64, 0), one = berth__chain_scalar(c, BERTH_F64, 1);
  berth_value rising =
      berth__chain_binary(c, "div", berth__chain_binary(c, "sub", row, lower),
                          berth__chain_where(c, berth__chain_binary(c, "eq", width, zero), one, width));
  rising = berth__chain_where(c, berth__chain_binary(c, "ge", row, lower), rising, zero);
  berth_value falling = berth__chain_binary(c, "div", berth__chain_binary(c, "sub", upper, row),
                                            berth__chain_where(c, berth__chain_binary(c, "eq", fall, zero), one, fall));
  falling = berth__chain_where(c, berth__chain_binary(c, "lt", row, upper), falling, zero);
  berth_value at_peak = berth__chain_binary(c, "eq", row, center);
  berth_value sides = berth__chain_where(c, berth__chain_binary(c, "lt", row, center), rising, falling);
  return berth__chain_where(c, at_peak, one, sides);
}

static berth_status convert_mel(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  berth_value in[5];
  berth_type type;
  int64_t first = 0, last = 1;
  BERTH__TRY(berth__onnx_begin(call, 5, err));
  BERTH__TRY(berth__onnx_named_type(call, "output_datatype", BERTH_F32, &type, err));
  for (int i = 0; i < 5; i++) in[i] = berth__chain_cast(&c, call->in[i], BERTH_F64);
  berth_value edges = mel_edges(&c, in);
  berth_value rows =
      berth__chain_with(&c, "add", berth__chain_unary(&c, "floor", berth__chain_with(&c, "div", in[1], 2)), 1);
  berth_value row = berth__chain_cast(&c, berth__chain_count(&c, rows), BERTH_F64);
  row = berth__chain_listed(&c, "unsqueeze", row, "axes", &last, 1);
  edges = berth__chain_listed(&c, "unsqueeze", edges, "axes", &first, 1);
  berth_value out = triangles(&c, row, berth__chain_slice(&c, edges, 1, 0, -2), berth__chain_slice(&c, edges, 1, 1, -1),
                              berth__chain_slice(&c, edges, 1, 2, INT64_MAX));
  call->out[0] = berth__chain_cast(&c, out, type);
  return c.status;
}

const berth__onnx_handler berth__onnx_signal[] = {
    {"BlackmanWindow", convert_blackman, NULL},
    {"DFT", convert_dft, NULL},
    {"HammingWindow", convert_hamming, NULL},
    {"HannWindow", convert_hann, NULL},
    {"MelWeightMatrix", convert_mel, NULL},
    {"STFT", convert_stft, NULL},
    {NULL, NULL, NULL},
};
