/**
 * Weights for a graph in the text form that has none: every `param` becomes a `const` with the sequence that
 * `berth run --random-weights` uses, so that the numbers are those of the command line.
 */
import { arrayOf, countOf } from '../common/types.js';
import { randomElements } from '../common/random.js';

const DIVISOR = 16; // the command line's; weights of deep models must stay small
const PARAM = /^([ \t]*)param[ \t]+%("[^"\n]*"|[\w.:/-]+)[ \t]+:[ \t]+(\w+)\[([\d, ]*)\][ \t]*(#.*)?$/gm;

/** Whether bytes are a graph in the text form: ONNX never begins like this. */
export function isText(bytes) {
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, 4096));
  return /^(\s*#[^\n]*\n)*\s*graph\s/.test(head);
}

function hexOf(data) {
  const digits = new Uint8Array(2 * data.byteLength);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  for (let i = 0; i < bytes.length; i++) {
    const high = bytes[i] >> 4, low = bytes[i] & 15;
    digits[2 * i] = high + (high < 10 ? 48 : 87);
    digits[2 * i + 1] = low + (low < 10 ? 48 : 87);
  }
  return new TextDecoder().decode(digits);
}

/** The text with weights in it, and how many params there were. A graph that names a weights file stays as it is. */
export function fillParams(text) {
  let filled = 0;
  if (/^[ \t]*weights[ \t]+"/m.test(text)) return { text, filled };
  const withWeights = text.replace(PARAM, (line, indent, name, type, shape) => {
    if (!arrayOf(type)) return line;
    filled++;
    const bare = name.startsWith('"') ? name.slice(1, -1) : name;
    const data = randomElements(type, countOf(shape.split(',').filter((s) => s.trim())), bare, 0, DIVISOR);
    return `${indent}const %${name} : ${type}[${shape}] = hex "${hexOf(data)}"`;
  });
  return { text: withWeights, filled };
}
