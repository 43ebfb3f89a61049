/* Elements: JavaScript's typed arrays for berth's types, and conversion of inputs. */
import { BerthError } from './program.js';

const ARRAYS = {
  f32: Float32Array, f64: Float64Array, f16: Uint16Array, bf16: Uint16Array, i8: Int8Array, u8: Uint8Array,
  i16: Int16Array, u16: Uint16Array, i32: Int32Array, u32: Uint32Array, i64: BigInt64Array, u64: BigUint64Array,
  bool: Uint8Array,
};

export const countOf = (shape) => shape.reduce((product, extent) => product * extent, 1);

/** Whether elements of the type can be accessed one by one, unlike those in blocks. */
export const isPlain = (type) => Object.hasOwn(ARRAYS, type);

/** A view of `count` elements at `at`. */
export const view = (type, buffer, at, count) => new ARRAYS[type](buffer, at, count);

const invalid = (message) => new BerthError('INVALID', message);
const shapeText = (shape) => `[${shape.join(', ')}]`;

function elementsOf({ name, type, shape }, given) {
  if (Array.isArray(given)) return given;
  if (ArrayBuffer.isView(given) && !(given instanceof DataView)) return given;
  if (given === null || typeof given !== 'object' || !ArrayBuffer.isView(given.data))
    throw invalid(`input '${name}' takes an array of numbers, a typed array, or { type, shape, data }`);
  if (given.type !== type) throw invalid(`input '${name}' is ${type}, but the tensor is ${given.type}`);
  if (shapeText(given.shape) !== shapeText(shape))
    throw invalid(`input '${name}' has the shape ${shapeText(shape)}, but the tensor has ${shapeText(given.shape)}`);
  return given.data;
}

const isWanted = (wanted, given) =>
  given instanceof wanted || (wanted === Uint8Array && given instanceof Uint8ClampedArray);

/** Converts an input to an array that `set` accepts. */
export function toWrite(input, given) {
  const { name, type, shape } = input, wanted = ARRAYS[type], count = countOf(shape);
  if (wanted === undefined) throw invalid(`there is no type '${type}'; they are ${Object.keys(ARRAYS).join(', ')}`);
  const elements = elementsOf(input, given);
  if (elements.length !== count) {
    throw invalid(`input '${name}' is ${type}${shapeText(shape)} and has ${count} elements, but ${elements.length} ` +
      'were given');
  }
  if (isWanted(wanted, elements)) return elements;
  if (!Array.isArray(elements))
    throw invalid(`input '${name}' is ${type} and takes a ${wanted.name}, not a ${elements.constructor.name}`);
  try {
    return wanted === BigInt64Array || wanted === BigUint64Array ? wanted.from(elements, BigInt) : wanted.from(elements);
  } catch {
    throw invalid(`input '${name}' is ${type}, and an element that was given cannot be one`);
  }
}

/** Checks that every input has an array, and that there are no others. */
export function checkNames(inputs, given) {
  const names = inputs.map(({ name }) => name);
  const list = names.map((name) => `'${name}'`).join(', ');
  for (const name of names)
    if (given?.[name] === undefined) throw invalid(`input '${name}' is missing; the model takes ${list}`);
  for (const name of Object.keys(given))
    if (!names.includes(name)) throw invalid(`there is no input '${name}'; the model takes ${list || 'none'}`);
}
