/**
 * Weights for a graph in the text form without weights: a safetensors file with the sequence of `berth run
 * --random-weights`, so that results equal those of the command line.
 */
import { writeSafetensors } from '../package/safetensors.js';
import { arrayOf, countOf } from '../common/types.js';
import { randomElements } from '../common/random.js';

const DIVISOR = 16; // as on the command line; weights of deep models must be small
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

/** A safetensors file for a graph's params, or null if the graph names a weights file, or has no params. */
export function seededWeights(text) {
  if (/^[ \t]*weights[ \t]+"/m.test(text)) return null;
  const params = paramsOf(text);
  if (params.length === 0) return null;
  const made = params.map(({ name, type, shape }) => {
    const data = randomElements(type, countOf(shape), name, 0, { divisor: DIVISOR });
    return [name, { type, shape, data }];
  });
  return writeSafetensors(Object.fromEntries(made));
}
