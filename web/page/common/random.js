/**
 * The pseudo-random elements of the command line (docs/cli.md): splitmix64, seeded with the FNV-1a hash of the name.
 * The seed 0 gives exactly the inputs of `berth run`; other seeds give other numbers. 64 bits are two halves of 32,
 * since BigInt would be twenty times slower.
 */
import { arrayOf, isFloat, writer } from './types.js';

const MASK = (1n << 64n) - 1n;
const GOLDEN = 0x9e3779b97f4a7c15n;

function hashOf(name) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(name)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & MASK;
  return hash;
}

/** The high half of the product of two unsigned 32-bit numbers. */
function highOf(a, b) {
  const a0 = a & 0xffff,
    a1 = a >>> 16,
    b0 = b & 0xffff,
    b1 = b >>> 16;
  const middle = a1 * b0 + ((a0 * b0) >>> 16);
  const low = (middle & 0xffff) + a0 * b1;
  return (a1 * b1 + Math.floor(middle / 65536) + Math.floor(low / 65536)) >>> 0;
}

/** Calls `each(i, high, low)` with `count` steps of splitmix64. */
function draw(state, count, each) {
  let high = Number(state >> 32n),
    low = Number(state & 0xffffffffn);
  for (let i = 0; i < count; i++) {
    low += 0x7f4a7c15;
    high = (high + 0x9e3779b9 + (low > 0xffffffff ? 1 : 0)) >>> 0;
    low >>>= 0;
    let h = (high ^ (high >>> 30)) >>> 0;
    let l = (low ^ ((low >>> 30) | (high << 2))) >>> 0;
    let product = (highOf(l, 0x1ce4e5b9) + Math.imul(h, 0x1ce4e5b9) + Math.imul(l, 0xbf58476d)) >>> 0;
    l = Math.imul(l, 0x1ce4e5b9) >>> 0;
    h = product;
    l = (l ^ ((l >>> 27) | (h << 5))) >>> 0;
    h = (h ^ (h >>> 27)) >>> 0;
    product = (highOf(l, 0x133111eb) + Math.imul(h, 0x133111eb) + Math.imul(l, 0x94d049bb)) >>> 0;
    l = Math.imul(l, 0x133111eb) >>> 0;
    h = product;
    l = (l ^ ((l >>> 31) | (h << 1))) >>> 0;
    h = (h ^ (h >>> 31)) >>> 0;
    each(i, h, l);
  }
}

const MOST = 10; // integers, unless a smaller limit is given

/** Floats in [-1, 1) over `divisor`; integers from 0 to 9, and below the model's limit; bool 0 or 1. */
export function randomElements(type, count, name, seed = 0, { divisor = 1, below = MOST } = {}) {
  const out = new (arrayOf(type))(count);
  const state = (hashOf(name) + BigInt(seed) * GOLDEN) & MASK;
  const write = writer(type);
  if (!isFloat(type)) {
    const modulus = type === 'bool' ? 2 : Math.min(below, MOST);
    draw(state, count, (i, high) => {
      out[i] = write(high % modulus);
    });
    return out;
  }
  const width = type === 'f16' ? 11 : type === 'bf16' ? 8 : 24;
  const unit = 2 ** (1 - width);
  draw(state, count, (i, high) => {
    out[i] = write(((high >>> (32 - width)) * unit - 1) / divisor);
  });
  return out;
}
