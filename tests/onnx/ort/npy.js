'use strict';
// Arrays in NumPy's .npy format, version 1, C order: {type, dims, bytes}, the types named as ONNX Runtime names them.
const fs = require('fs');

const TYPES = {
  float32: ['<f4', Float32Array], float64: ['<f8', Float64Array], float16: ['<f2', Uint16Array],
  int8: ['|i1', Int8Array], uint8: ['|u1', Uint8Array], int16: ['<i2', Int16Array], uint16: ['<u2', Uint16Array],
  int32: ['<i4', Int32Array], uint32: ['<u4', Uint32Array], int64: ['<i8', BigInt64Array],
  uint64: ['<u8', BigUint64Array], bool: ['|b1', Uint8Array],
};

function load(path) {
  const file = fs.readFileSync(path);
  const start = 10 + file.readUInt16LE(8);
  const header = file.toString('latin1', 10, start);
  const descr = /'descr': *'([^']*)'/.exec(header)[1];
  const type = Object.keys(TYPES).find((name) => TYPES[name][0] === descr);
  if (type === undefined) throw new Error(`${path}: elements of type ${descr}`);
  const dims = /'shape': *\(([^)]*)\)/.exec(header)[1].split(',').filter((d) => d.trim() !== '').map(Number);
  return {type, dims, bytes: file.subarray(start)};
}

function save(path, {type, dims, bytes}) {
  const shape = dims.length === 1 ? `(${dims[0]},)` : `(${dims.join(', ')})`;
  let header = `{'descr': '${TYPES[type][0]}', 'fortran_order': False, 'shape': ${shape}, }`;
  header = header.padEnd(Math.ceil((header.length + 11) / 64) * 64 - 11) + '\n';
  const length = Buffer.alloc(2);
  length.writeUInt16LE(header.length);
  const magic = Buffer.from('\x93NUMPY\x01\x00', 'latin1');
  fs.writeFileSync(path, Buffer.concat([magic, length, Buffer.from(header), bytes]));
}

// A typed array over a copy of the bytes, which need not be aligned.
function elements({type, bytes}) {
  const copy = new Uint8Array(bytes);
  return new TYPES[type][1](copy.buffer, 0, copy.byteLength / TYPES[type][1].BYTES_PER_ELEMENT);
}

function bytesOf(typed) {
  return Buffer.from(typed.buffer, typed.byteOffset, typed.byteLength);
}

function halfToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

// The elements as numbers.
function numbers(array) {
  const typed = elements(array);
  if (array.type === 'float16') return Float64Array.from(typed, halfToNumber);
  return Float64Array.from(typed, Number);
}

module.exports = {TYPES, load, save, elements, bytesOf, numbers};
