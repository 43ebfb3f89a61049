/**
 * Weights for a graph in the text form that has none: a safetensors file with the sequence that
 * `berth run --random-weights` uses, so that the numbers are those of the command line.
 */
import { arrayOf, countOf, widthOf } from '../common/types.js';
import { randomElements } from '../common/random.js';

const DIVISOR = 16; // the command line's; weights of deep models must stay small
const PARAM = /^[ \t]*param[ \t]+%("[^"\n]*"|[\w.:/-]+)[ \t]+:[ \t]+(\w+)\[([\d, ]*)\][ \t]*(?:#.*)?$/gm;

/** Whether bytes are a graph in the text form: ONNX never begins like this. */
export function isText(bytes) {
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, 4096));
  return /^(\s*#[^\n]*\n)*\s*graph\s/.test(head);
}

function paramsOf(text) {
  return [...text.matchAll(PARAM)]
    .filter(([, , type]) => arrayOf(type))
    .map(([, name, type, shape]) => ({
      name: name.startsWith('"') ? name.slice(1, -1) : name,
      type,
      shape: shape
        .split(',')
        .filter((s) => s.trim())
        .map(Number),
    }));
}

/** The header has its length before it, 8 bytes, and is filled up so that the data is aligned. */
function headerOf(params) {
  let at = 0;
  const entries = params.map(({ name, type, shape }) => {
    const begin = at;
    at += countOf(shape) * widthOf(type);
    return [name, { dtype: type.toUpperCase(), shape, data_offsets: [begin, at] }];
  });
  const json = JSON.stringify(Object.fromEntries(entries));
  const bytes = new TextEncoder().encode(json.padEnd(Math.ceil(json.length / 64) * 64 + 56));
  return { bytes, size: at };
}

/** A safetensors file for a graph's params, or null for a graph that names a file of its own, or has no params. */
export function seededWeights(text) {
  if (/^[ \t]*weights[ \t]+"/m.test(text)) return null;
  const params = paramsOf(text);
  if (params.length === 0) return null;
  const header = headerOf(params);
  const file = new Uint8Array(8 + header.bytes.length + header.size);
  new DataView(file.buffer).setBigUint64(0, BigInt(header.bytes.length), true);
  file.set(header.bytes, 8);
  let at = 8 + header.bytes.length;
  for (const { name, type, shape } of params) {
    const data = randomElements(type, countOf(shape), name, 0, { divisor: DIVISOR });
    file.set(new Uint8Array(data.buffer), at);
    at += data.byteLength;
  }
  return file;
}
