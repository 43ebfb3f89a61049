/* ONNX models with external data: the library reads a model from one block of memory, so the weights are inserted into
 * it. The file is a protocol buffer; messages without such tensors are unchanged. */
import { BerthError } from './program.js';

/* Fields that may contain tensors, by message: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto */
const inside = {
  model: { 7: 'graph', 25: 'func' },
  graph: { 1: 'node', 5: 'tensor' },
  func: { 7: 'node' },
  node: { 5: 'attribute' },
  attribute: { 5: 'tensor', 6: 'graph', 10: 'tensor', 11: 'graph' },
};
const DIMS = 1, TYPE = 2, RAW = 9, EXTERNAL = 13, LOCATION = 14; // of a tensor
const DEEPEST = 200; // nested messages
const VARINT = 0, WORD64 = 1, BYTES = 2, WORD32 = 5; // wire types

/** Bytes per element, by ONNX's type number; half a byte is 0.5. */
const widths = {
  1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2, 17: 1, 18: 1, 19: 1, 20: 1, 21: 0.5, 22: 0.5,
};

const malformed = (message) => new BerthError('MALFORMED', message);
const decoder = new TextDecoder();

function readVarint(bytes, at, end) {
  let value = 0;
  for (let scale = 1; at < end; scale *= 128) {
    const byte = bytes[at++];
    value += (byte & 127) * scale;
    if (byte < 128) return [value, at];
  }
  throw malformed('the model ends within a number');
}

/** The fields of a message: { number, begin, value } or { number, begin, from, to }, and where each ends. */
function* fieldsOf(bytes, at, end) {
  while (at < end) {
    const begin = at;
    let tag, value = 0, from = at;
    [tag, at] = readVarint(bytes, at, end);
    const wire = tag % 8;
    if (wire === VARINT) [value, at] = readVarint(bytes, at, end);
    else if (wire === WORD64) at += 8;
    else if (wire === WORD32) at += 4;
    else if (wire === BYTES) {
      [value, from] = readVarint(bytes, at, end);
      at = from + value;
    } else throw malformed(`the model has a field of kind ${wire}`);
    if (at > end) throw malformed(`a field of ${value} bytes runs past the end of the model`);
    yield { number: Math.floor(tag / 8), wire, begin, end: at, from, value };
  }
}

function varint(value) {
  const out = [];
  for (; value >= 128; value = Math.floor(value / 128)) out.push((value % 128) + 128);
  return [...out, value];
}

const sizeOf = (pieces) => pieces.reduce((sum, piece) => sum + piece.length, 0);

const framed = (number, pieces) => [new Uint8Array([...varint(number * 8 + BYTES), ...varint(sizeOf(pieces))]), ...pieces];

/** The location of a tensor's data, from its key-value entries. */
function placeOf(bytes, entries) {
  const place = {};
  for (const entry of entries) {
    const pair = {};
    for (const { number, from, end } of fieldsOf(bytes, entry.from, entry.end))
      pair[number] = decoder.decode(bytes.subarray(from, end));
    place[pair[1]] = pair[2];
  }
  return place;
}

function dimsOf(bytes, { wire, from, end, value }) {
  if (wire === VARINT) return [value];
  const dims = [];
  for (let at = from, dim; at < end;) {
    [dim, at] = readVarint(bytes, at, end);
    dims.push(dim);
  }
  return dims;
}

/** The components of a path, last one first. */
const partsOf = (path) => path.split(/[/\\]/).filter((part) => part !== '' && part !== '.').reverse();

/** The file for a location; the folders of files may be unknown. Of several with the same file name, the one with the
 * longest matching path; null if there is none, or it is ambiguous. */
function find(files, location) {
  if (Object.hasOwn(files, location)) return files[location];
  const wanted = partsOf(location);
  const agreement = (name) => {
    const given = partsOf(name), end = wanted.findIndex((part, i) => part !== given[i]);
    return end < 0 ? wanted.length : end;
  };
  const found = Object.keys(files).map((name) => ({ name, count: agreement(name) }));
  const most = Math.max(0, ...found.map(({ count }) => count));
  const best = found.filter(({ count }) => count === most && count > 0);
  return best.length === 1 ? files[best[0].name] : null;
}

/** A tensor with its data included; null: it has it already, or its file was not given, which the library reports. */
function wholeTensor(bytes, at, end, files) {
  const fields = [...fieldsOf(bytes, at, end)];
  if (!fields.some(({ number, value }) => number === LOCATION && value === 1)) return null;
  const { location = '', offset = '0', length } = placeOf(bytes, fields.filter(({ number }) => number === EXTERNAL));
  const file = find(files, location);
  if (file === null) return null;
  const count = fields.filter(({ number }) => number === DIMS).flatMap((field) => dimsOf(bytes, field))
    .reduce((product, dim) => product * dim, 1);
  const width = widths[fields.find(({ number }) => number === TYPE)?.value] ?? 1;
  const first = Number(offset), size = length === undefined ? Math.ceil(count * width) : Number(length);
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(size) || first < 0 || size < 0 || first + size > file.length)
    throw malformed(`'${location}' has ${file.length} bytes, and ${size} from ${first} are needed: it may be another model's`);
  const kept = fields.filter(({ number }) => number !== EXTERNAL && number !== LOCATION && number !== RAW)
    .map((field) => bytes.subarray(field.begin, field.end));
  return [...kept, ...framed(RAW, [file.subarray(first, first + size)])];
}

/** A message with the data of all its tensors included; null: unchanged. */
function whole(bytes, at, end, kind, files, depth = 0) {
  if (kind === 'tensor') return wholeTensor(bytes, at, end, files);
  if (depth > DEEPEST) throw malformed('its graphs lie too deep in each other');
  const pieces = [];
  let kept = at;
  for (const field of fieldsOf(bytes, at, end)) {
    const below = field.wire === BYTES ? inside[kind][field.number] : undefined;
    const changed = below === undefined ? null : whole(bytes, field.from, field.end, below, files, depth + 1);
    if (changed === null) continue;
    pieces.push(bytes.subarray(kept, field.begin), ...framed(field.number, changed));
    kept = field.end;
  }
  if (pieces.length === 0) return null;
  pieces.push(bytes.subarray(kept, end));
  return pieces;
}

/** The pieces of a model with the external data that is in `files` (Uint8Arrays by name). */
export const withExternalData = (bytes, files) => whole(bytes, 0, bytes.length, 'model', files) ?? [bytes];
