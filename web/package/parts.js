/* GGUF models split over several files: joined to one file without changing the tensors. The first part has all keys;
 * each part has its index (split.no, from 0), the number of parts (split.count), and its own tensors. The format:
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md */
import { BerthError } from './program.js';
import { openBlob } from './source.js';

const MAGIC = 0x46554747; // "GGUF"
const FIRST_LOOK = 1 << 20; // bytes that may contain the whole header
const ALIGNMENT = 32; // bytes, if the file does not say
const MOST = 65535; // most parts
const STRING = 8, ARRAY = 9;
const SIZES = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 }; // bytes of values, by type
const OWN = ['split.no', 'split.count', 'split.tensors.count']; // keys of a part that do not apply to the whole

const decoder = new TextDecoder();
const malformed = (message) => new BerthError('MALFORMED', message);

class NeedsMore extends Error {}

/** Reads a header sequentially; it may need more bytes. */
class Reader {
  at = 0;

  constructor(bytes, isWhole) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.isWhole = isWhole;
  }

  skip(size) {
    const from = this.at;
    if (from + size <= this.bytes.length) {
      this.at += size;
      return from;
    }
    if (!this.isWhole) throw new NeedsMore();
    throw malformed('the header of a part of the model ends early: the file is cut off');
  }

  u32() {
    return this.view.getUint32(this.skip(4), true);
  }

  u64() {
    const value = this.view.getBigUint64(this.skip(8), true);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw malformed(`a part of the model has a length of ${value}`);
    return Number(value);
  }

  string() {
    const size = this.u64(), from = this.skip(size);
    return decoder.decode(this.bytes.slice(from, from + size));
  }

  /** The value if it is a number. */
  value(type) {
    if (type === STRING) return this.string();
    if (type === ARRAY) return this.array();
    const size = SIZES[type];
    if (size === undefined) throw malformed(`a part of the model has a value of the type ${type}, which there is not`);
    const from = this.skip(size);
    if (size === 2) return this.view.getUint16(from, true);
    if (size === 4) return this.view.getUint32(from, true);
    return size === 1 ? this.bytes[from] : Number(this.view.getBigUint64(from, true));
  }

  array() {
    const type = this.u32(), count = this.u64();
    if (SIZES[type] !== undefined) this.skip(SIZES[type] * count);
    else for (let i = 0; i < count; i++) this.value(type);
  }
}

function readKeys(reader, count) {
  const keys = { kept: [], known: {} };
  for (let i = 0; i < count; i++) {
    const from = reader.at, name = reader.string(), value = reader.value(reader.u32());
    if (OWN.includes(name) || name === 'general.alignment') keys.known[name] = value;
    if (!OWN.includes(name)) keys.kept.push(reader.bytes.slice(from, reader.at));
  }
  return keys;
}

/** Each with its bytes up to the offset, its last field. */
function readTensors(reader, count) {
  return Array.from({ length: count }, () => {
    const from = reader.at;
    reader.skip(reader.u64());
    reader.skip(8 * reader.u32());
    reader.skip(4);
    const head = reader.bytes.slice(from, reader.at);
    return { head, offset: reader.u64() };
  });
}

function parse(bytes, isWhole) {
  const reader = new Reader(bytes, isWhole);
  if (reader.u32() !== MAGIC) throw malformed('a part of the model is not a GGUF file');
  const version = reader.u32(), nTensors = reader.u64(), { kept, known } = readKeys(reader, reader.u64());
  if (version < 2 || version > 3) throw new BerthError('UNSUPPORTED', `a part of the model is GGUF ${version}; 2 and 3 are read`);
  const tensors = readTensors(reader, nTensors);
  const alignment = known['general.alignment'] ?? ALIGNMENT;
  if (!(alignment > 0)) throw malformed('a part of the model says that its tensors lie at multiples of 0');
  const { 'split.no': number = 0, 'split.count': count = 1 } = known;
  if (!(count >= 1 && count <= MOST)) throw malformed(`a part of the model says that there are ${count} of them`);
  return { version, kept, tensors, alignment, number, count, data: Math.ceil(reader.at / alignment) * alignment };
}

export async function readHeader(blob) {
  for (let size = FIRST_LOOK; ; size *= 4) {
    const bytes = new Uint8Array(await blob.slice(0, size).arrayBuffer());
    try {
      return { ...parse(bytes, size >= blob.size), blob };
    } catch (error) {
      if (!(error instanceof NeedsMore)) throw error;
    }
  }
}

/** Sorts the parts, and checks that none is missing or duplicated. */
function ordered(parts) {
  const [{ count }] = parts, list = Array(count).fill(null);
  if (count === 1) throw new BerthError('INVALID', 'the file is a whole model, and others were given as parts of it');
  for (const part of parts) {
    if (part.count !== count || part.number >= count)
      throw new BerthError('INVALID', 'the files are parts of different models');
    if (list[part.number] !== null) throw new BerthError('INVALID', `part ${part.number + 1} of ${count} was given twice`);
    list[part.number] = part;
  }
  const missing = list.flatMap((part, i) => (part === null ? [i + 1] : []));
  if (missing.length === 0) return list;
  throw new BerthError('INVALID', `the model is split over ${count} files, and of these ${missing.join(', ')} ` +
    `${missing.length === 1 ? 'is' : 'are'} missing`);
}

const u64 = (value) => new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
const padding = (size, alignment) => new Uint8Array((alignment - (size % alignment)) % alignment);

/** Joins them to one file, as a Blob. */
export async function joinParts(sources) {
  const parts = ordered(await Promise.all(sources.map(async (source) => readHeader(await openBlob(source)))));
  const [{ version, kept, alignment }] = parts;
  const tensors = [], data = [];
  let base = 0;
  for (const part of parts) {
    const size = part.blob.size - part.data;
    for (const { head, offset } of part.tensors) tensors.push(head, u64(base + offset));
    if (size <= 0) continue;
    const fill = padding(size, alignment);
    data.push(part.blob.slice(part.data), fill);
    base += size + fill.length;
  }
  const head = [Uint32Array.of(MAGIC, version), u64(tensors.length / 2), u64(kept.length), ...kept, ...tensors];
  const size = head.reduce((sum, piece) => sum + piece.byteLength, 0);
  return new Blob([...head, padding(size, alignment), ...data]);
}
