'use strict';
// Writes the f16 twin of an f32 model: every f32 tensor, input, output and cast becomes f16, also in branches and loop
// bodies. Scales and regions of Resize stay f32, as ONNX requires.
//   node bench/ort/halve.js MODEL.onnx TWIN.onnx
const fs = require('fs');

const F32 = 1, F16 = 10;

// ---- Protobuf: a message is a list of fields [number, wire type, value] ----

function readVarint(data, at) {
  let value = 0n, shift = 0n;
  for (;; shift += 7n) {
    const byte = data[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [value, at];
  }
}

function parse(data) {
  const fields = [];
  for (let at = 0, key, value; at < data.length;) {
    [key, at] = readVarint(data, at);
    const wire = Number(key & 7n), number = Number(key >> 3n);
    if (wire === 0) [value, at] = readVarint(data, at);
    else {
      let size = wire === 5 ? 4n : 8n;
      if (wire === 2) [size, at] = readVarint(data, at);
      value = data.subarray(at, at + Number(size));
      at += Number(size);
    }
    fields.push([number, wire, value]);
  }
  return fields;
}

function varint(value) {
  const bytes = [];
  for (let v = value; ; v >>= 7n) {
    bytes.push(Number(v & 127n) | (v > 127n ? 128 : 0));
    if (v <= 127n) return Buffer.from(bytes);
  }
}

function write(fields) {
  return Buffer.concat(fields.flatMap(([number, wire, value]) => {
    const key = varint(BigInt((number << 3) | wire));
    if (wire === 0) return [key, varint(value)];
    return wire === 2 ? [key, varint(BigInt(value.length)), value] : [key, value];
  }));
}

const get = (fields, number) => (fields.find(([n]) => n === number) || [])[2];
// Changes the fields with these numbers; copies all others.
const change = (data, by) => write(parse(data).map(([n, wire, v]) => [n, wire, by[n] ? by[n](v) : v]));

// ---- ONNX ----

function half(value) { // to the nearest, ties to even
  const bits = new Uint32Array(Float32Array.of(value).buffer)[0], sign = (bits >>> 16) & 0x8000;
  const size = Math.abs(value);
  if (Number.isNaN(value)) return 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  const exponent = Math.max(Math.floor(Math.log2(size || 2 ** -24)), -14);
  const step = 2 ** (exponent - 10), whole = Math.floor(size / step), rest = size / step - whole;
  const up = rest > 0.5 || (rest === 0.5 && whole % 2 === 1) ? 1 : 0; // may correctly carry into the exponent
  return sign | (whole + up + (exponent + 14) * 1024);
}

function halveTensor(data) {
  const fields = parse(data);
  if (Number(get(fields, 2)) !== F32) return data;
  const raw = get(fields, 9) || Buffer.concat(fields.filter(([n]) => n === 4).map(([, , v]) => v));
  const floats = new Float32Array(raw.length / 4), halves = new Uint16Array(floats.length);
  Buffer.from(floats.buffer).set(raw);
  floats.forEach((value, i) => { halves[i] = half(value); });
  const kept = fields.filter(([n]) => n !== 2 && n !== 4 && n !== 9);
  return write([...kept, [2, 0, BigInt(F16)], [9, 2, Buffer.from(halves.buffer)]]);
}

const halveValue = (data) => change(data, {
  2: (type) => change(type, {1: (tensor) => change(tensor, {1: (t) => (t === BigInt(F32) ? BigInt(F16) : t)})}),
});

function halveNode(data) {
  const isCast = String(get(parse(data), 4)) === 'Cast';
  const attribute = (a) => change(a, {
    3: (i) => (isCast && i === BigInt(F32) ? BigInt(F16) : i), 5: halveTensor, 6: halveGraph, 11: halveGraph,
  });
  return change(data, {5: attribute});
}

function halveGraph(data) {
  const fields = parse(data), kept = new Set();
  for (const [n, , node] of fields) {
    if (n !== 1 || String(get(parse(node), 4)) !== 'Resize') continue;
    const inputs = parse(node).filter(([field]) => field === 1).map(([, , name]) => String(name));
    for (const name of inputs.slice(1)) kept.add(name);
  }
  const tensor = (t) => (kept.has(String(get(parse(t), 8))) ? t : halveTensor(t));
  const isMadeForResize = (node) => parse(node).some(([n, , name]) => n === 2 && kept.has(String(name)));
  const node = (one) => (isMadeForResize(one) ? one : halveNode(one));
  return change(data, {1: node, 5: tensor, 11: halveValue, 12: halveValue, 13: halveValue});
}

const [, , from, to] = process.argv;
fs.writeFileSync(to, change(fs.readFileSync(from), {7: halveGraph}));
