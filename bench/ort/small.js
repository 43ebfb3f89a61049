'use strict';
// Thirty small models of the kinds that run next to a microphone or a sensor, with random weights: wake word heads,
// keyword spotting, voice and anomaly detectors, gestures, digits; in f32, quantised with QDQ, and with dynamic
// quantisation. The same form as networks.js, with published sizes; there is no smaller version for tests.

const relu = (g, x) => g.add('Relu', [x]);
const sigmoid = (g, x) => g.add('Sigmoid', [x]);

function gemm(g, x, from, to) {
  return g.add('Gemm', [x, g.weight([to, from], from), g.weight([to], 100)], {transB: 1});
}

function linear(g, x, from, to) {
  return g.add('Add', [g.add('MatMul', [x, g.weight([from, to], from)]), g.weight([to], 100)]);
}

function norm(g, x, width) { // expanded, as in files before opset 17
  const mean = g.add('ReduceMean', [x], {axes: [-1]}), centred = g.add('Sub', [x, mean]);
  const variance = g.add('ReduceMean', [g.add('Mul', [centred, centred])], {axes: [-1]});
  const deviation = g.add('Sqrt', [g.add('Add', [variance, g.scalar(1e-5)])]);
  return g.add('Add', [g.add('Mul', [g.add('Div', [centred, deviation]), g.fill([width], 1)]), g.fill([width], 0)]);
}

function layerNorm(g, x, width) {
  return g.add('LayerNormalization', [x, g.fill([width], 1), g.fill([width], 0)], {axis: -1});
}

const input = (g, dims, name = 'x') => [g.input(name, 'float32', dims), {name, type: 'float32', dims}];
const flatten = (g, x) => g.add('Flatten', [x], {axis: 1});

// ---- Wake word heads: from 16 embeddings of 96 numbers to the probability ----

function head(product, between, widths) {
  return (g) => {
    const [x, given] = input(g, [1, 16, 96]);
    let y = flatten(g, x), from = 16 * 96;
    for (const to of widths) {
      y = relu(g, between(g, product(g, y, from, to), to));
      from = to;
    }
    g.output(sigmoid(g, product(g, y, from, 1)), 'probability', [1, 1]);
    return [given];
  };
}

const nothing = (g, x) => x;

// ---- Recurrent networks ----

const GATES = {LSTM: 4, GRU: 3};

function recurrent(op, {steps, width, hidden, outputs, directions = 1}) {
  return (g) => {
    const [x, given] = input(g, [steps, 1, width]), rows = GATES[op] * hidden;
    const weights = [g.weight([directions, rows, width], width), g.weight([directions, rows, hidden], hidden),
      g.weight([directions, 2 * rows], 100)];
    const direction = directions === 2 ? 'bidirectional' : 'forward';
    const more = op === 'GRU' ? {linear_before_reset: 1} : {};
    const [, last] = g.addMany(op, [x, ...weights], 2, {hidden_size: hidden, direction, ...more});
    const y = g.add('Reshape', [last, g.ints(1, directions * hidden)]);
    g.output(sigmoid(g, gemm(g, y, directions * hidden, outputs)), 'probability', [1, outputs]);
    return [given];
  };
}

function streaming(op, {width, hidden}) { // one step at a time, with its state as input and output
  return (g) => {
    const [x, given] = input(g, [1, 1, width]), [h, before] = input(g, [1, 1, hidden], 'h'), rows = GATES[op] * hidden;
    const weights = [g.weight([1, rows, width], width), g.weight([1, rows, hidden], hidden), g.weight([1, 2 * rows], 100)];
    const [, last] = g.addMany(op, [x, ...weights, '', h], 2, {hidden_size: hidden, linear_before_reset: 1});
    g.output(sigmoid(g, gemm(g, g.add('Reshape', [last, g.ints(1, hidden)]), hidden, 1)), 'probability', [1, 1]);
    g.output(last, 'h_next', [1, 1, hidden]);
    return [given, before];
  };
}

// ---- Convolutional networks ----

function conv(g, x, from, to, {kernel, stride = [1, 1], group = 1, pad = kernel.map((k) => (k - 1) >> 1)}) {
  const fan = (from / group) * kernel.reduce((a, b) => a * b, 1);
  const attributes = {kernel_shape: kernel, strides: stride, pads: [...pad, ...pad], group};
  return g.add('Conv', [x, g.weight([to, from / group, ...kernel], fan), g.weight([to], 100)], attributes);
}

const pooled = (g, x) => flatten(g, g.add('GlobalAveragePool', [x]));

function separable({size, channels, layers, classes}) { // keyword spotting: 49 frames of 10 coefficients
  return (g) => {
    const [x, given] = input(g, [1, 1, ...size]);
    let y = relu(g, conv(g, x, 1, channels, {kernel: [10, 4], stride: [2, 2], pad: [4, 1]}));
    for (let i = 0; i < layers; i++) {
      y = relu(g, conv(g, y, channels, channels, {kernel: [3, 3], group: channels}));
      y = relu(g, conv(g, y, channels, channels, {kernel: [1, 1]}));
    }
    g.output(g.add('Softmax', [gemm(g, pooled(g, y), channels, classes)], {axis: 1}), 'scores', [1, classes]);
    return [given];
  };
}

function lines({channels, length, widths, kernel, outputs}) { // 1-d, along time
  return (g) => {
    const [x, given] = input(g, [1, channels, length]);
    let y = x, from = channels;
    for (const to of widths) {
      y = relu(g, conv(g, y, from, to, {kernel: [kernel], stride: [2]}));
      from = to;
    }
    g.output(sigmoid(g, gemm(g, pooled(g, y), from, outputs)), 'probability', [1, outputs]);
    return [given];
  };
}

function pictures({size, from, widths, classes}) { // 3 x 3, halved by pooling
  return (g) => {
    const [x, given] = input(g, [1, from, size, size]);
    let y = x, channels = from, side = size;
    for (const to of widths) {
      y = relu(g, conv(g, y, channels, to, {kernel: [3, 3]}));
      y = g.add('MaxPool', [y], {kernel_shape: [2, 2], strides: [2, 2]});
      channels = to, side >>= 1;
    }
    g.output(gemm(g, flatten(g, y), channels * side * side, classes), 'logits', [1, classes]);
    return [given];
  };
}

// ---- Fully connected networks ----

function layers(widths, last = nothing) {
  return (g) => {
    const [x, given] = input(g, [1, widths[0]]);
    let y = x;
    for (let i = 1; i < widths.length; i++) {
      y = gemm(g, y, widths[i - 1], widths[i]);
      if (i + 1 < widths.length) y = relu(g, y);
    }
    const outputs = widths[widths.length - 1];
    g.output(last(g, y), 'y', [1, outputs]);
    return [given];
  };
}

// ---- Quantised: between a QuantizeLinear and a DequantizeLinear, as quantisers export it ----

const SCALE = 0.05;

function quantize(g, x, scale = SCALE) {
  const operands = [g.scalar(scale), g.constant('uint8', [], [128])];
  return g.add('DequantizeLinear', [g.add('QuantizeLinear', [x, ...operands]), ...operands]);
}

function byteWeight(g, dims, fan) { // per channel
  const scales = g.constant('float32', [dims[0]], Array.from({length: dims[0]}, (_, i) => (1 + (i % 7) / 8) / 127 / Math.sqrt(fan / 3)));
  const zeros = g.constant('int8', [dims[0]], new Array(dims[0]).fill(0));
  return g.add('DequantizeLinear', [g.bytes('int8', dims), scales, zeros], {axis: 0});
}

function byteBias(g, count) {
  const scale = g.scalar(SCALE / 127), zero = g.constant('int32', [], [0]);
  return g.add('DequantizeLinear', [g.constant('int32', [count], Array.from({length: count}, (_, i) => (i * 37) % 101)), scale, zero]);
}

function byteGemm(g, x, from, to, then = nothing) {
  return quantize(g, then(g, g.add('Gemm', [x, byteWeight(g, [to, from], from), byteBias(g, to)], {transB: 1})));
}

function byteHead(widths) {
  return (g) => {
    const [x, given] = input(g, [1, 16, 96]);
    let y = flatten(g, quantize(g, x)), from = 16 * 96;
    for (const to of widths) {
      y = byteGemm(g, y, from, to, relu);
      from = to;
    }
    g.output(sigmoid(g, byteGemm(g, y, from, 1)), 'probability', [1, 1]);
    return [given];
  };
}

function byteConv(g, x, from, to, {kernel, stride = [1, 1], group = 1, pad = kernel.map((k) => (k - 1) >> 1)}) {
  const fan = (from / group) * kernel.reduce((a, b) => a * b, 1);
  const attributes = {kernel_shape: kernel, strides: stride, pads: [...pad, ...pad], group};
  return quantize(g, relu(g, g.add('Conv', [x, byteWeight(g, [to, from / group, ...kernel], fan), byteBias(g, to)], attributes)));
}

function byteSeparable({size, channels, layers: count, classes}) {
  return (g) => {
    const [x, given] = input(g, [1, 1, ...size]);
    let y = byteConv(g, quantize(g, x), 1, channels, {kernel: [10, 4], stride: [2, 2], pad: [4, 1]});
    for (let i = 0; i < count; i++) {
      y = byteConv(g, y, channels, channels, {kernel: [3, 3], group: channels});
      y = byteConv(g, y, channels, channels, {kernel: [1, 1]});
    }
    g.output(byteGemm(g, quantize(g, pooled(g, y)), channels, classes), 'scores', [1, classes]);
    return [given];
  };
}

function bytePictures({size, from, widths, classes}) {
  return (g) => {
    const [x, given] = input(g, [1, from, size, size]);
    let y = quantize(g, x), channels = from, side = size;
    for (const to of widths) {
      y = byteConv(g, y, channels, to, {kernel: [3, 3]});
      y = quantize(g, g.add('MaxPool', [y], {kernel_shape: [2, 2], strides: [2, 2]}));
      channels = to, side >>= 1;
    }
    g.output(byteGemm(g, flatten(g, y), channels * side * side, classes), 'logits', [1, classes]);
    return [given];
  };
}

// ---- Dynamic quantisation: a run determines the activations' scales ----

function dynamic(type, op) { // MatMulInteger or ConvInteger
  return (g, x, dims, fan, attributes = {}) => {
    const [q, scale, zero] = g.addMany('DynamicQuantizeLinear', [x], 3);
    const zeroOfWeight = g.constant(type, [], [type === 'uint8' ? 128 : 0]);
    const sums = g.add(op, [q, g.bytes(type, dims), zero, zeroOfWeight], attributes);
    const scales = g.add('Mul', [scale, g.scalar(1 / 127 / Math.sqrt(fan / 3))]);
    return g.add('Mul', [g.add('Cast', [sums], {to: 1}), scales]);
  };
}

function dynamicGemm(type) {
  return (g, x, from, to) => g.add('Add', [dynamic(type, 'MatMulInteger')(g, x, [from, to], from), g.weight([to], 100)]);
}

function dynamicPictures({size, from, widths, classes, type}) {
  return (g) => {
    const [x, given] = input(g, [1, from, size, size]);
    let y = x, channels = from, side = size;
    for (const to of widths) {
      const attributes = {kernel_shape: [3, 3], strides: [1, 1], pads: [1, 1, 1, 1], group: 1};
      const made = dynamic(type, 'ConvInteger')(g, y, [to, channels, 3, 3], channels * 9, attributes);
      y = relu(g, g.add('Add', [made, g.weight([1, to, 1, 1], 100)]));
      y = g.add('MaxPool', [y], {kernel_shape: [2, 2], strides: [2, 2]});
      channels = to, side >>= 1;
    }
    g.output(dynamicGemm(type)(g, flatten(g, y), channels * side * side, classes), 'logits', [1, classes]);
    return [given];
  };
}

function weightsOnly(widths) { // bytes in the file, arithmetic in f32
  return (g) => {
    const [x, given] = input(g, [1, widths[0]]);
    let y = x;
    for (let i = 1; i < widths.length; i++) {
      y = g.add('Gemm', [y, byteWeight(g, [widths[i], widths[i - 1]], widths[i - 1]), g.weight([widths[i]], 100)], {transB: 1});
      if (i + 1 < widths.length) y = relu(g, y);
    }
    g.output(sigmoid(g, y), 'y', [1, widths[widths.length - 1]]);
    return [given];
  };
}

const keywords = {size: [49, 10], channels: 64, layers: 4, classes: 12};
const builders = {
  wake_gemm_32: head(gemm, nothing, [32, 32]),
  wake_gemm_64: head(gemm, nothing, [64, 64]),
  wake_gemm_128: head(gemm, nothing, [128, 128]),
  wake_matmul_64: head(linear, nothing, [64]),
  wake_matmul_96: head(linear, nothing, [96, 96, 96]),
  wake_norm_64: head(gemm, norm, [64, 64]),
  wake_norm_128: head(gemm, layerNorm, [128, 128]),
  wake_gru_64: recurrent('GRU', {steps: 16, width: 96, hidden: 64, outputs: 1}),
  wake_lstm_32: recurrent('LSTM', {steps: 16, width: 96, hidden: 32, outputs: 1}),
  vad_gru_step_64: streaming('GRU', {width: 42, hidden: 64}),
  gesture_lstm_bidi: recurrent('LSTM', {steps: 24, width: 6, hidden: 24, outputs: 8, directions: 2}),
  vad_lines: lines({channels: 40, length: 32, widths: [32, 32, 64], kernel: 3, outputs: 1}),
  vibration_lines: lines({channels: 3, length: 256, widths: [16, 32, 32], kernel: 9, outputs: 4}),
  keywords_small: separable({size: [49, 10], channels: 24, layers: 2, classes: 12}),
  keywords: separable(keywords),
  digits_conv: pictures({size: 28, from: 1, widths: [8, 16], classes: 10}),
  objects_conv: pictures({size: 32, from: 3, widths: [16, 32, 32], classes: 10}),
  anomaly_640: layers([640, 128, 128, 8, 128, 128, 640]),
  tabular_30: layers([30, 64, 32, 1], sigmoid),
  iris_4: layers([4, 16, 16, 3]),
  regression_512: layers([512, 1]),
  wake_qdq_64: byteHead([64, 64]),
  wake_qdq_128: byteHead([128, 128]),
  keywords_qdq: byteSeparable(keywords),
  objects_qdq: bytePictures({size: 32, from: 3, widths: [16, 32, 32], classes: 10}),
  wake_dynamic_u8: head(dynamicGemm('uint8'), nothing, [64, 64]),
  wake_dynamic_i8: head(dynamicGemm('int8'), nothing, [128, 128]),
  objects_dynamic: dynamicPictures({size: 32, from: 3, widths: [16, 32, 32], classes: 10, type: 'uint8'}),
  anomaly_weights_i8: weightsOnly([640, 128, 8, 128, 640]),
  scores_weights_i8: weightsOnly([512, 256, 1]),
};

module.exports = Object.fromEntries(Object.entries(builders).map(([name, build]) => [name, {build}]));
