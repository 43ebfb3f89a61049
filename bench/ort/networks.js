'use strict';
// Networks of well-known architectures with random weights. Each takes a graph and its sizes, adds its nodes, and
// returns its inputs: {name, type, dims}; integers start at `offset`, with `limit` different values. `full` is the
// published network, `small` is for tests.

// ---- Parts ----

function conv(g, x, from, to, {kernel = 1, stride = 1, group = 1} = {}) {
  const pad = (kernel - 1) >> 1, fan = (from / group) * kernel * kernel;
  return g.add('Conv', [x, g.weight([to, from / group, kernel, kernel], fan), g.weight([to], 100)], {
    kernel_shape: [kernel, kernel], strides: [stride, stride], pads: [pad, pad, pad, pad], group,
    dilations: [1, 1],
  });
}

const relu = (g, x) => g.add('Relu', [x]);
const relu6 = (g, x) => g.add('Clip', [x, g.scalar(0), g.scalar(6)]);
const swish = (g, x) => g.add('Mul', [x, g.add('Sigmoid', [x])]);

function classify(g, x, channels, classes) { // from a feature map
  const pooled = g.add('Flatten', [g.add('GlobalAveragePool', [x])], {axis: 1});
  return dense(g, pooled, channels, classes);
}

function dense(g, x, from, to) {
  return g.add('Gemm', [x, g.weight([to, from], from), g.weight([to], 100)], {transB: 1});
}

function linear(g, x, from, to) {
  return g.add('Add', [g.add('MatMul', [x, g.weight([from, to], from)]), g.weight([to], 100)]);
}

function layerNorm(g, x, width, epsilon) {
  const operands = [x, g.fill([width], 1), g.fill([width], 0)];
  return g.add('LayerNormalization', operands, {axis: -1, epsilon: {float: epsilon}});
}

function gelu(g, x) { // as exporters write it
  const erf = g.add('Erf', [g.add('Div', [x, g.scalar(Math.SQRT2)])]);
  return g.add('Mul', [g.add('Mul', [x, g.add('Add', [erf, g.scalar(1)])]), g.scalar(0.5)]);
}

// ---- Transformers ----

function bertHeads(g, x, {width, heads}) {
  const split = g.add('Reshape', [linear(g, x, width, width), g.ints(0, 0, heads, width / heads)]);
  return g.add('Transpose', [split], {perm: [0, 2, 1, 3]});
}

function bertLayer(g, x, mask, sizes) {
  const {width, heads, inner} = sizes;
  const [q, k, v] = [0, 1, 2].map(() => bertHeads(g, x, sizes));
  const products = g.add('MatMul', [q, g.add('Transpose', [k], {perm: [0, 1, 3, 2]})]);
  const scores = g.add('Div', [products, g.scalar(Math.sqrt(width / heads))]);
  const shares = g.add('Softmax', [g.add('Add', [scores, mask])], {axis: -1});
  const mixed = g.add('Transpose', [g.add('MatMul', [shares, v])], {perm: [0, 2, 1, 3]});
  const attended = linear(g, g.add('Reshape', [mixed, g.ints(0, 0, width)]), width, width);
  const middle = layerNorm(g, g.add('Add', [attended, x]), width, 1e-12);
  const fed = linear(g, gelu(g, linear(g, middle, width, inner)), inner, width);
  return layerNorm(g, g.add('Add', [fed, middle]), width, 1e-12);
}

function bertEmbedding(g, ids, kinds, {vocabulary, positions, width}) {
  const words = g.add('Gather', [g.weight([vocabulary, width], 3), ids]);
  const types = g.add('Gather', [g.weight([2, width], 3), kinds]);
  const length = g.add('Slice', [g.add('Shape', [ids]), g.ints(1), g.ints(2), g.ints(0)]);
  const places = g.add('Slice', [g.weight([positions, width], 3), g.ints(0), length, g.ints(0)]);
  return layerNorm(g, g.add('Add', [g.add('Add', [words, types]), places]), width, 1e-12);
}

function minilm(g, sizes) {
  const {layers, sequence, vocabulary, width} = sizes, named = ['batch', 'sequence'];
  const [ids, mask, kinds] = ['input_ids', 'attention_mask', 'token_type_ids'].map((n) => g.input(n, 'int64', named));
  const wide = g.add('Unsqueeze', [g.add('Unsqueeze', [mask, g.ints(1)]), g.ints(2)]);
  const masked = g.add('Sub', [g.scalar(1), g.add('Cast', [wide], {to: 1})]);
  const bias = g.add('Mul', [masked, g.scalar(-10000)]);
  let x = bertEmbedding(g, ids, kinds, sizes);
  for (let i = 0; i < layers; i++) x = bertLayer(g, x, bias, sizes);
  g.output(x, 'last_hidden_state', [...named, width]);
  return [{name: ids, limit: vocabulary}, {name: mask, offset: 1}, {name: kinds}].map((input) => ({
    ...input, type: 'int64', dims: [1, sequence],
  }));
}

function vitLayer(g, x, {width, heads, tokens}) {
  const normed = layerNorm(g, x, width, 1e-6), each = width / heads;
  const qkv = g.add('Reshape', [linear(g, normed, width, 3 * width), g.ints(1, tokens, 3, heads, each)]);
  const parts = g.add('Transpose', [qkv], {perm: [2, 0, 3, 1, 4]});
  const [q, k, v] = [0, 1, 2].map((i) => g.add('Gather', [parts, g.index(i)], {axis: 0}));
  const scaled = g.add('Mul', [q, g.scalar(1 / Math.sqrt(each))]);
  const scores = g.add('MatMul', [scaled, g.add('Transpose', [k], {perm: [0, 1, 3, 2]})]);
  const mixed = g.add('MatMul', [g.add('Softmax', [scores], {axis: -1}), v]);
  const joined = g.add('Reshape', [g.add('Transpose', [mixed], {perm: [0, 2, 1, 3]}), g.ints(1, tokens, width)]);
  const middle = g.add('Add', [x, linear(g, joined, width, width)]);
  const inner = gelu(g, linear(g, layerNorm(g, middle, width, 1e-6), width, 4 * width));
  return g.add('Add', [middle, linear(g, inner, 4 * width, width)]);
}

function deit(g, {size, patch, width, heads, layers, classes}) {
  const tokens = (size / patch) ** 2 + 1, dims = [1, 3, size, size];
  const image = g.input('pixel_values', 'float32', dims);
  const kernel = g.weight([width, 3, patch, patch], 3 * patch * patch), square = [patch, patch];
  const patches = g.add('Conv', [image, kernel, g.weight([width], 100)], {kernel_shape: square, strides: square});
  const row = g.add('Transpose', [g.add('Reshape', [patches, g.ints(1, width, tokens - 1)])], {perm: [0, 2, 1]});
  let x = g.add('Concat', [g.weight([1, 1, width], 3), row], {axis: 1});
  x = g.add('Add', [x, g.weight([1, tokens, width], 3)]);
  for (let i = 0; i < layers; i++) x = vitLayer(g, x, {width, heads, tokens});
  const first = g.add('Gather', [layerNorm(g, x, width, 1e-6), g.index(0)], {axis: 1});
  g.output(dense(g, first, width, classes), 'logits', [1, classes]);
  return [{name: image, type: 'float32', dims}];
}

// ---- Convolutional networks ----

function bottleneck(g, x, from, middle, stride) {
  const to = middle * 4;
  const a = relu(g, conv(g, x, from, middle));
  const b = relu(g, conv(g, a, middle, middle, {kernel: 3, stride}));
  const c = conv(g, b, middle, to);
  const shortcut = from === to && stride === 1 ? x : conv(g, x, from, to, {stride});
  return relu(g, g.add('Add', [c, shortcut]));
}

function resnet(g, {size, width, blocks, classes}) {
  const dims = [1, 3, size, size], image = g.input('image', 'float32', dims);
  let x = relu(g, conv(g, image, 3, width, {kernel: 7, stride: 2})), from = width;
  x = g.add('MaxPool', [x], {kernel_shape: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1]});
  blocks.forEach((n, stage) => {
    for (let i = 0; i < n; i++) {
      x = bottleneck(g, x, from, width << stage, i === 0 && stage > 0 ? 2 : 1);
      from = (width << stage) * 4;
    }
  });
  g.output(classify(g, x, from, classes), 'logits', [1, classes]);
  return [{name: image, type: 'float32', dims}];
}

// Expands by 1x1, depthwise, optional squeeze-and-excite, projects by 1x1, and a shortcut if the shapes allow it.
function invertedResidual(g, x, from, to, {expand, kernel, stride, act, excite}) {
  const wide = from * expand;
  let y = expand === 1 ? x : act(g, conv(g, x, from, wide));
  y = act(g, conv(g, y, wide, wide, {kernel, stride, group: wide}));
  if (excite) {
    const few = Math.max(1, from >> 2);
    const narrow = act(g, conv(g, g.add('GlobalAveragePool', [y]), wide, few));
    y = g.add('Mul', [y, g.add('Sigmoid', [conv(g, narrow, few, wide)])]);
  }
  y = conv(g, y, wide, to);
  return from === to && stride === 1 ? g.add('Add', [x, y]) : y;
}

function mobile(g, {size, stem, stages, last, classes, act, excite}) {
  const dims = [1, 3, size, size], image = g.input('image', 'float32', dims);
  let x = act(g, conv(g, image, 3, stem, {kernel: 3, stride: 2})), from = stem;
  for (const [expand, to, n, stride, kernel] of stages) {
    for (let i = 0; i < n; i++) {
      x = invertedResidual(g, x, from, to, {expand, kernel, stride: i === 0 ? stride : 1, act, excite});
      from = to;
    }
  }
  g.output(classify(g, act(g, conv(g, x, from, last)), last, classes), 'logits', [1, classes]);
  return [{name: image, type: 'float32', dims}];
}

function twoConvs(g, x, from, to) {
  return relu(g, conv(g, relu(g, conv(g, x, from, to, {kernel: 3})), to, to, {kernel: 3}));
}

// Every level on the way down is kept for a skip connection.
function unet(g, {size, width, levels}) {
  const dims = [1, 3, size, size], image = g.input('image', 'float32', dims), skips = [];
  let x = image, from = 3;
  for (let level = 0; level < levels; level++) {
    const to = width << level;
    x = twoConvs(g, x, from, to), from = to;
    if (level === levels - 1) break;
    skips.push(x);
    x = g.add('MaxPool', [x], {kernel_shape: [2, 2], strides: [2, 2]});
  }
  while (skips.length > 0) {
    const to = from / 2;
    const up = g.add('ConvTranspose', [x, g.weight([from, to, 2, 2], from), g.weight([to], 100)], {
      kernel_shape: [2, 2], strides: [2, 2],
    });
    x = twoConvs(g, g.add('Concat', [skips.pop(), up], {axis: 1}), from, to), from = to;
  }
  g.output(g.add('Sigmoid', [conv(g, x, from, 1)]), 'mask', [1, 1, size, size]);
  return [{name: image, type: 'float32', dims}];
}

// ---- Their sizes. Stages of the mobile networks: expansion, channels, blocks, stride, kernel ----

const MOBILENET = [
  [1, 16, 1, 1, 3], [6, 24, 2, 2, 3], [6, 32, 3, 2, 3], [6, 64, 4, 2, 3], [6, 96, 3, 1, 3], [6, 160, 3, 2, 3],
  [6, 320, 1, 1, 3],
];
const EFFICIENTNET = [
  [1, 16, 1, 1, 3], [6, 24, 2, 2, 3], [6, 40, 2, 2, 5], [6, 80, 3, 2, 3], [6, 112, 3, 1, 5], [6, 192, 4, 2, 5],
  [6, 320, 1, 1, 3],
];
const FEW = [[1, 4, 1, 1, 3], [6, 4, 2, 2, 5]];

// ---- Gradient boosting: trees of one depth, as scikit-learn's converter writes them ----

function forest(graph, {rows, features, trees, depth}) {
  const x = graph.input('x', 'float32', [rows, features]), {random} = graph;
  const nodes = {treeids: [], nodeids: [], featureids: [], modes: [], values: [], truenodeids: [], falsenodeids: []};
  const leaves = {treeids: [], nodeids: [], ids: [], weights: []}, inner = 2 ** depth - 1;
  for (let tree = 0; tree < trees; tree++)
    for (let node = 0; node < 2 * inner + 1; node++) {
      const isLeaf = node >= inner;
      nodes.treeids.push(tree), nodes.nodeids.push(node), nodes.modes.push(isLeaf ? 'LEAF' : 'BRANCH_LEQ');
      nodes.featureids.push(isLeaf ? 0 : Math.floor(random.next() * features));
      nodes.values.push(isLeaf ? 0 : random.next() * 2 - 1);
      nodes.truenodeids.push(isLeaf ? 0 : 2 * node + 1), nodes.falsenodeids.push(isLeaf ? 0 : 2 * node + 2);
      if (!isLeaf) continue;
      leaves.treeids.push(tree), leaves.nodeids.push(node), leaves.ids.push(0);
      leaves.weights.push((random.next() * 2 - 1) / 10);
    }
  const named = (prefix, lists) => Object.fromEntries(Object.entries(lists).map(([k, v]) => [`${prefix}_${k}`,
    k === 'modes' ? {strings: v} : k === 'values' || k === 'weights' ? {floats: v} : v]));
  const attributes = {n_targets: 1, ...named('nodes', nodes), ...named('target', leaves)};
  graph.output(graph.add('TreeEnsembleRegressor', [x], attributes, 'ai.onnx.ml'), 'y', [rows, 1]);
  return [{name: 'x', type: 'float32', dims: [rows, features]}];
}

// ---- Weights of four bits, in groups of 32 that share a scale, as quantised language models have them ----

function fourBits(graph, {rows, width, layers, level}) {
  let x = graph.input('x', 'float32', [rows, width]);
  for (let i = 0; i < layers; i++) {
    const fields = graph.bytes('uint8', [width, width / 32, 16]), scale = graph.weight([width * width / 32], 64 * width);
    const attributes = {K: width, N: width, bits: 4, block_size: 32, accuracy_level: level};
    x = graph.add('Tanh', [graph.add('MatMulNBits', [x, fields, scale], attributes, 'com.microsoft')]);
  }
  graph.output(x, 'y', [rows, width]);
  return [{name: 'x', type: 'float32', dims: [rows, width]}];
}

module.exports = {
  trees_1_row: {
    build: forest,
    full: {rows: 1, features: 30, trees: 100, depth: 8},
    small: {rows: 1, features: 3, trees: 2, depth: 2},
  },
  trees_1000_rows: {
    build: forest,
    full: {rows: 1000, features: 30, trees: 100, depth: 8},
    small: {rows: 10, features: 3, trees: 2, depth: 2},
  },
  minilm_l6: {
    build: minilm,
    full: {layers: 6, sequence: 128, vocabulary: 30522, positions: 512, width: 384, heads: 12, inner: 1536},
    small: {layers: 1, sequence: 8, vocabulary: 50, positions: 16, width: 24, heads: 3, inner: 48},
  },
  resnet50: {
    build: resnet,
    full: {size: 224, width: 64, blocks: [3, 4, 6, 3], classes: 1000},
    small: {size: 32, width: 4, blocks: [2, 1], classes: 5},
  },
  mobilenet_v2: {
    build: mobile,
    full: {size: 224, stem: 32, stages: MOBILENET, last: 1280, classes: 1000, act: relu6},
    small: {size: 32, stem: 4, stages: FEW, last: 8, classes: 5, act: relu6},
  },
  efficientnet_b0: {
    build: mobile,
    full: {size: 224, stem: 32, stages: EFFICIENTNET, last: 1280, classes: 1000, act: swish, excite: true},
    small: {size: 32, stem: 4, stages: FEW, last: 8, classes: 5, act: swish, excite: true},
  },
  deit_tiny: {
    build: deit,
    full: {size: 224, patch: 16, width: 192, heads: 3, layers: 12, classes: 1000},
    small: {size: 32, patch: 16, width: 24, heads: 3, layers: 1, classes: 5},
  },
  unet_1024: {
    build: unet,
    full: {size: 1024, width: 16, levels: 5},
    small: {size: 32, width: 2, levels: 3},
  },
  four_bits_row: {build: fourBits, full: {rows: 1, width: 2048, layers: 6, level: 0},
                  small: {rows: 1, width: 64, layers: 2, level: 0}},
  four_bits_row_i8: {build: fourBits, full: {rows: 1, width: 2048, layers: 6, level: 4},
                     small: {rows: 1, width: 64, layers: 2, level: 4}},
  four_bits_64: {build: fourBits, full: {rows: 64, width: 2048, layers: 6, level: 0},
                 small: {rows: 5, width: 64, layers: 2, level: 0}},
  four_bits_64_i8: {build: fourBits, full: {rows: 64, width: 2048, layers: 6, level: 4},
                    small: {rows: 5, width: 64, layers: 2, level: 4}},
};
