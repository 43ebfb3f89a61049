/* One of ONNX's node tests, in a browser or in Node: a model, its inputs and expected outputs. */

const TYPES = {
  1: ['f32', Float32Array], 2: ['u8', Uint8Array], 3: ['i8', Int8Array], 4: ['u16', Uint16Array],
  5: ['i16', Int16Array], 6: ['i32', Int32Array], 7: ['i64', BigInt64Array], 9: ['bool', Uint8Array],
  10: ['f16', Uint16Array], 11: ['f64', Float64Array], 12: ['u32', Uint32Array], 13: ['u64', BigUint64Array],
  16: ['bf16', Uint16Array],
};

/* ---- TensorProto ---- */

class Wire {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  get isAtEnd() {
    return this.at >= this.bytes.length;
  }

  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.bytes[this.at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
  }

  piece(size) {
    this.at += size;
    return this.bytes.slice(this.at - size, this.at);
  }

  /** The number of the next field, and its contents: a number, or bytes. */
  field() {
    const tag = Number(this.varint());
    const read = [() => this.varint(), () => this.piece(8), () => this.piece(Number(this.varint())), , , () => this.piece(4)];
    return [tag >> 3, read[tag & 7]()];
  }
}

/* Repeated numbers may be in one field, or each in its own. */
function varints(value) {
  if (typeof value === 'bigint') return [value];
  const numbers = [];
  for (const wire = new Wire(value); !wire.isAtEnd;) numbers.push(wire.varint());
  return numbers;
}

function joined(pieces) {
  const bytes = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes.buffer;
}

export function parseTensor(buffer) {
  const shape = [], integers = [], pieces = [];
  let kind = 0;
  for (const wire = new Wire(new Uint8Array(buffer)); !wire.isAtEnd;) {
    const [number, value] = wire.field();
    if (number === 3 && typeof value !== 'bigint') return parseTensor(value); // an OptionalProto that contains a tensor
    if (number === 1) shape.push(...varints(value).map(Number));
    if (number === 2) kind = Number(value);
    if (number === 5 || number === 7 || number === 11) integers.push(...varints(value));
    if (number === 4 || number === 9 || number === 10) pieces.push(value);
  }
  if (TYPES[kind] === undefined) throw new Error(`elements of type ${kind} are not read here`);
  const [type, View] = TYPES[kind], isWide = View === BigInt64Array || View === BigUint64Array;
  const data = integers.length !== 0 ? View.from(isWide ? integers : integers.map(Number))
    : new View(joined(pieces));
  return { type, shape, data };
}

/* ---- Comparing ---- */

function fromF16(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, part = bits & 1023;
  if (exponent === 31) return part !== 0 ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? part * 2 ** -24 : (1024 + part) * 2 ** (exponent - 25));
}

const fromBF16 = (bits) => new Float32Array(Uint32Array.of(bits << 16).buffer)[0];

function isSame(type, got, wanted) {
  if (!/f/.test(type)) return got === wanted;
  const [a, b] = [got, wanted].map((x) => (type === 'f16' ? fromF16(x) : type === 'bf16' ? fromBF16(x) : x));
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) && Number.isNaN(b);
  return a === b || Math.abs(a - b) <= (type === 'f16' || type === 'bf16' ? 1e-2 : 1e-6) + 1e-3 * Math.abs(b);
}

/* ONNX 1.12's files say u16 for the bits of bf16. */
const storedType = (type, wanted) => (type === 'u16' && wanted === 'bf16' ? 'bf16' : type);

/** The difference of an output; '' if there is none. */
function difference(name, got, wanted) {
  const type = storedType(wanted.type, got.type);
  if (got.type !== type || `${got.shape}` !== `${wanted.shape}`)
    return `output '${name}' is ${got.type}[${got.shape}], expected ${type}[${wanted.shape}]`;
  for (let i = 0; i < wanted.data.length; i++)
    if (!isSame(type, got.data[i], wanted.data[i]))
      return `output '${name}': element ${i} is ${got.data[i]}, expected ${wanted.data[i]}`;
  return '';
}

/* ---- Running ---- */

async function readAll(read, kind, count) {
  const tensors = [];
  for (let i = 0; i < count; i++) {
    const buffer = await read(`test_data_set_0/${kind}_${i}.pb`);
    if (buffer === null) break;
    tensors.push(parseTensor(buffer));
  }
  return tensors;
}

async function runSession(model, tensors, device, read) {
  const dims = {}, given = {};
  model.inputs.forEach(({ name, type, shape }, i) => {
    given[name] = { ...tensors[i], type: storedType(tensors[i].type, type) };
    shape.forEach((dim, axis) => {
      if (typeof dim === 'string') dims[dim] = tensors[i].shape[axis];
    });
  });
  for (const name of model.toFix) {
    await model.fix(name, given[name]);
    delete given[name];
  }
  const open = Object.fromEntries(Object.entries(dims).filter(([name]) => model.dims.includes(name)));
  const session = await model.session({ device, dims: open });
  try {
    const outputs = Object.entries(await session.run(given));
    const wanted = await readAll(read, 'output', outputs.length);
    return wanted.map((tensor, i) => difference(...outputs[i], tensor)).find((text) => text !== '') ?? '';
  } finally {
    session.close();
  }
}

/** The error; '' if there is none. `read` returns a file of the case as an ArrayBuffer, or null. */
export async function runCase(berth, device, read) {
  let model = null;
  try {
    model = await berth.model(await read('model.onnx'));
    return await runSession(model, await readAll(read, 'input', model.inputs.length), device, read);
  } catch (error) {
    return error.message;
  } finally {
    model?.close();
  }
}
