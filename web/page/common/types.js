/** Element types: their width, their typed array, and conversion of their bits. */

const arrays = {
  f32: Float32Array,
  f64: Float64Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  i8: Int8Array,
  u8: Uint8Array,
  i16: Int16Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  bool: Uint8Array,
};

export const arrayOf = (type) => arrays[type];
export const isFloat = (type) => type.startsWith('f') || type === 'bf16';
export const isWide = (type) => type === 'i64' || type === 'u64';
export const countOf = (shape) => shape.reduce((product, extent) => product * Number(extent), 1);

const bits = new DataView(new ArrayBuffer(4));

function fromHalf(half) {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function fromBrain(value) {
  bits.setUint16(0, value);
  bits.setUint16(2, 0);
  return bits.getFloat32(0);
}

/** To nearest even; `value` is any float32. */
function toBrain(value) {
  bits.setFloat32(0, value);
  const word = bits.getUint32(0);
  if (Number.isNaN(value)) return (word >>> 16) | 0x40;
  return (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
}

function toHalf(value) {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  if (Number.isNaN(value)) return 0x7e00;
  if (magnitude >= 65520) return sign | 0x7c00;
  const exponent = Math.max(-14, Math.floor(Math.log2(magnitude || 2 ** -30)));
  const scaled = magnitude / 2 ** (exponent - 10);
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  const rounded = floor + (rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? 1 : 0);
  return sign | (rounded + (exponent + 14) * 1024); // a carry correctly increments the exponent
}

/** A function from a stored element to a number. */
export function reader(type) {
  if (type === 'f16') return fromHalf;
  if (type === 'bf16') return fromBrain;
  return isWide(type) ? Number : (value) => value;
}

/** A function from a number to a stored element. */
export function writer(type) {
  if (type === 'f16') return toHalf;
  if (type === 'bf16') return toBrain;
  if (type === 'bool') return (value) => (value ? 1 : 0);
  if (isWide(type)) return (value) => (type === 'u64' ? BigInt.asUintN : BigInt.asIntN)(64, BigInt(Math.trunc(value)));
  return isFloat(type) ? (value) => value : Math.trunc;
}
