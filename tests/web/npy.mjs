/** .npy files in the form that the command line writes. */
import { readFileSync, writeFileSync } from 'node:fs';

const arrays = {
  '<f4': Float32Array, '<f8': Float64Array, '|i1': Int8Array, '|u1': Uint8Array, '|b1': Uint8Array, '<i2': Int16Array,
  '<u2': Uint16Array, '<i4': Int32Array, '<u4': Uint32Array, '<i8': BigInt64Array, '<u8': BigUint64Array,
};

export function readNpy(file) {
  const bytes = readFileSync(file);
  const long = bytes[6] > 1;
  const start = long ? 12 : 10;
  const end = start + (long ? bytes.readUInt32LE(8) : bytes.readUInt16LE(8));
  const header = bytes.toString('latin1', start, end);
  const type = arrays[/'descr': *'([^']*)'/.exec(header)[1]];
  if (!type) throw new Error(`${file} holds elements that this test does not read: ${header}`);
  const shape = /'shape': *\(([^)]*)\)/.exec(header)[1].split(',').filter((part) => part.trim()).map(Number);
  const data = new type(bytes.buffer.slice(bytes.byteOffset + end, bytes.byteOffset + bytes.length));
  return { shape, data };
}

const names = {
  Float32Array: '<f4', Float64Array: '<f8', Int8Array: '|i1', Uint8Array: '|u1', Int16Array: '<i2', Uint16Array: '<u2',
  Int32Array: '<i4', Uint32Array: '<u4', BigInt64Array: '<i8', BigUint64Array: '<u8',
};

export function writeNpy(file, shape, data) {
  const tuple = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const text = `{'descr': '${names[data.constructor.name]}', 'fortran_order': False, 'shape': (${tuple}), }`;
  const header = Buffer.from(text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + '\n', 'latin1');
  const start = Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, header.length & 255, header.length >> 8]);
  writeFileSync(file, Buffer.concat([start, header, Buffer.from(data.buffer, data.byteOffset, data.byteLength)]));
}
