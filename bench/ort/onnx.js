'use strict';
// Writes ONNX files: a protobuf writer, and a graph builder with seeded random weights.
const fs = require('fs');

const TYPES = {float32: 1, uint8: 2, int8: 3, int32: 6, int64: 7};

const ARRAYS = {float32: Float32Array, uint8: Uint8Array, int8: Int8Array, int32: Int32Array};

// ---- Protobuf: a message is a list of encoded fields ----

function varint(value) {
  const bytes = [];
  for (let v = BigInt.asUintN(64, BigInt(value)); ; v >>= 7n) {
    bytes.push(Number(v & 127n) | (v > 127n ? 128 : 0));
    if (v <= 127n) return Buffer.from(bytes);
  }
}

const int = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, data) => Buffer.concat([varint((field << 3) | 2), varint(data.length), data]);
const text = (field, value) => bytes(field, Buffer.from(value));
const message = (field, parts) => bytes(field, Buffer.concat(parts));

function float(field, value) {
  const data = Buffer.alloc(4);
  data.writeFloatLE(value);
  return Buffer.concat([varint((field << 3) | 5), data]);
}

// ---- The messages of ONNX ----

function tensor(name, type, dims, data) {
  const raw = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return [...dims.map((d) => int(1, d)), int(2, TYPES[type]), text(8, name), bytes(9, raw)];
}

// Dimensions are numbers or names.
function valueInfo(name, type, dims) {
  const shape = message(2, dims.map((d) => message(1, [typeof d === 'string' ? text(2, d) : int(1, d)])));
  return [text(1, name), message(2, [message(1, [int(1, TYPES[type]), shape])])];
}

// An integer, a list of integers, a string, {float: x}, or a list as {floats: [...]} or {strings: [...]}.
function attribute(name, value) {
  if (value.floats) return [text(1, name), ...value.floats.map((v) => float(7, v)), int(20, 6)];
  if (value.strings) return [text(1, name), ...value.strings.map((v) => text(9, v)), int(20, 8)];
  if (Array.isArray(value)) return [text(1, name), ...value.map((v) => int(8, v)), int(20, 7)];
  if (typeof value === 'string') return [text(1, name), text(4, value), int(20, 3)];
  if (typeof value === 'object') return [text(1, name), float(2, value.float), int(20, 1)];
  return [text(1, name), int(3, value), int(20, 2)];
}

// ---- Numbers that are the same on every machine ----

class Random {
  constructor(seed) { this.state = seed >>> 0 || 1; }

  next() { // uniform in [0, 1)
    let x = this.state;
    x ^= x << 13, x ^= x >>> 17, x ^= x << 5;
    this.state = x >>> 0;
    return this.state / 4294967296;
  }

  floats(count, scale) { // uniform in [-scale, scale)
    const out = new Float32Array(count);
    for (let i = 0; i < count; i++) out[i] = (this.next() * 2 - 1) * scale;
    return out;
  }
}

const product = (dims) => dims.reduce((a, b) => a * b, 1);

class Graph {
  constructor(name, seed) {
    this.name = name;
    this.random = new Random(seed);
    this.nodes = [], this.initializers = [], this.inputs = [], this.outputs = [];
    this.constants = new Map();
    this.count = 0;
  }

  input(name, type, dims) {
    this.inputs.push(message(11, valueInfo(name, type, dims)));
    return name;
  }

  output(value, name, dims) {
    this.nodes.push(message(1, [text(1, value), text(2, name), text(3, name), text(4, 'Identity')]));
    this.outputs.push(message(12, valueInfo(name, 'float32', dims)));
  }

  initializer(name, type, dims, data) {
    this.initializers.push(message(5, tensor(name, type, dims, data)));
    return name;
  }

  // Scaled so that a sum over `fan` products keeps the magnitude of its operands.
  weight(dims, fan) {
    return this.initializer(`w${this.count++}`, 'float32', dims, this.random.floats(product(dims), Math.sqrt(3 / fan)));
  }

  fill(dims, value) {
    return this.initializer(`w${this.count++}`, 'float32', dims, new Float32Array(product(dims)).fill(value));
  }

  // Bytes like those of a quantiser: {type, dims, limit}, uniform in [-limit, limit].
  bytes(type, dims, limit = 127) {
    const numbers = Int8Array.from({length: product(dims)}, () => Math.round((this.random.next() * 2 - 1) * limit));
    const data = type === 'uint8' ? Uint8Array.from(numbers, (n) => n + 128) : numbers;
    return this.initializer(`w${this.count++}`, type, dims, data);
  }

  // Small constants, without duplicates.
  constant(type, dims, numbers) {
    const key = `${type} ${dims} ${numbers}`;
    if (!this.constants.has(key)) {
      const data = type === 'int64' ? BigInt64Array.from(numbers, BigInt) : ARRAYS[type].from(numbers);
      this.constants.set(key, this.initializer(`c${this.count++}`, type, dims, data));
    }
    return this.constants.get(key);
  }

  scalar(value) { return this.constant('float32', [], [value]); }
  ints(...values) { return this.constant('int64', [values.length], values); }
  index(value) { return this.constant('int64', [], [value]); }

  add(op, inputs, attributes = {}, domain = '') { return this.addMany(op, inputs, 1, attributes, domain)[0]; }

  // A node with several results; an operand '' is omitted.
  addMany(op, inputs, count, attributes = {}, domain = '') {
    const name = `${op.toLowerCase()}_${this.nodes.length}`;
    const outs = Array.from({length: count}, (_, i) => (i === 0 ? name : `${name}_${i}`));
    const attrs = Object.entries(attributes).map(([key, value]) => message(5, attribute(key, value)));
    const values = [...inputs.map((v) => text(1, v)), ...outs.map((v) => text(2, v)), text(3, name), text(4, op)];
    this.nodes.push(message(1, [...values, ...attrs, ...(domain ? [text(7, domain)] : [])]));
    return outs;
  }

  write(path, opset) {
    const graph = [...this.nodes, text(2, this.name), ...this.initializers, ...this.inputs, ...this.outputs];
    const model = [int(1, 8), text(2, 'berth bench'), message(7, graph), message(8, [text(1, ''), int(2, opset)]),
      message(8, [text(1, 'ai.onnx.ml'), int(2, 3)]), message(8, [text(1, 'com.microsoft'), int(2, 1)])];
    fs.writeFileSync(path, Buffer.concat(model));
  }
}

module.exports = {Graph, Random};
