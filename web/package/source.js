/* Sources of bytes: addresses, files, and memory. */
import { host } from './host.js';
import { BerthError } from './program.js';

const bytesOf = (view) => new Uint8Array(view.buffer ?? view, view.byteOffset ?? 0, view.byteLength);

const PIECE = 1 << 20; // bytes per read
const FIRST_LOOK = 1 << 16; // bytes that may contain the whole header

async function* piecesOf(stream) {
  const reader = stream.getReader();
  try {
    for (let piece; !(piece = await reader.read()).done;) yield piece.value;
  } finally {
    await reader.cancel().catch(() => {}); // the rest is not needed
    reader.releaseLock();
  }
}

async function* piecesOfBlob(blob) {
  for (let at = 0; at < blob.size; at += PIECE)
    yield new Uint8Array(await blob.slice(at, Math.min(at + PIECE, blob.size)).arrayBuffer());
}

async function openAddress(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  const isPacked = response.headers.get('content-encoding') !== null; // then its length is that of the compressed bytes
  const total = isPacked ? 0 : Number(response.headers.get('content-length') ?? 0);
  /* For another origin a browser shows the length but hides that the bytes are compressed. */
  return { pieces: piecesOf(response.body), total, isExact: response.type !== 'cors' };
}

function resolve(source) {
  if (source instanceof URL || host.pathToUrl === null || URL.canParse?.(source))
    return new URL(source, globalThis.location?.href);
  return host.pathToUrl(source);
}

/* { pieces, total, isExact }: a sequence of Uint8Arrays, and the number of bytes (0: unknown); there may be more if it
 * is not exact. */
async function open(source) {
  if (typeof source === 'string' || source instanceof URL) {
    const url = resolve(source);
    return url.protocol === 'file:' && host.openFile !== null ? host.openFile(url) : openAddress(url);
  }
  if (typeof Blob === 'function' && source instanceof Blob)
    return { pieces: piecesOfBlob(source), total: source.size };
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) {
    const bytes = bytesOf(source);
    return { pieces: [bytes], total: bytes.length };
  }
  throw new BerthError('INVALID', 'a model is an address, a Blob, an ArrayBuffer or a view of one');
}

/* Passes every piece to `take`, until that has enough, and reports progress. Failures become berth's errors. */
async function read(source, begin, take, tell) {
  try {
    const { pieces, total, isExact = true } = await open(source);
    let size = 0;
    begin(total, isExact);
    for await (const piece of pieces) {
      const isEnough = await take(piece);
      size += piece.length;
      tell(size, total);
      if (isEnough === true) break;
    }
  } catch (error) {
    if (error instanceof BerthError) throw error;
    const what = typeof source === 'string' || source instanceof URL ? String(source) : 'the bytes';
    throw new BerthError('IO', `cannot read ${what}: ${error.cause?.message ?? error.message}`);
  }
}

/* A block in a program's memory that grows as pieces arrive. */
class Block {
  at = 0;
  size = 0;
  #room = 0;
  #program;

  constructor(program) {
    this.#program = program;
  }

  grow(room) {
    const program = this.#program, larger = program.alloc(room);
    if (this.at !== 0) {
      program.bytes.copyWithin(larger, this.at, this.at + this.size);
      program.free(this.at);
    }
    this.at = larger;
    this.#room = room;
  }

  take(piece) {
    const size = this.size + piece.length;
    if (size > this.#room) this.grow(Math.max(size, this.#room + Math.floor(this.#room / 2)));
    this.#program.bytes.set(piece, this.at + this.size);
    this.size = size;
  }

  free() {
    if (this.at !== 0) this.#program.free(this.at);
    this.at = 0;
  }
}

/** Copies the bytes to the memory of `program`: { at, size }; the caller frees `at`. */
export async function readInto(program, source, tell) {
  const block = new Block(program);
  try {
    await read(source, (total) => block.grow(total), (piece) => block.take(piece), tell);
  } catch (error) {
    block.free();
    throw error;
  }
  return block;
}

/** Reads until `look(at, size, total)` has enough bytes for an answer; it returns 0 if it needs more. `total` is
 * Infinity if unknown. With its answer, `look` takes ownership of the bytes. */
export async function readUntil(program, source, look, tell) {
  const block = new Block(program);
  let answer = 0, whole = Infinity, next = FIRST_LOOK;
  const begin = (total, isExact) => {
    if (total !== 0 && isExact) whole = total;
  };
  const take = async (piece) => {
    block.take(piece);
    if (block.size < next || block.size === whole) return false;
    next = 2 * block.size;
    answer = await look(block.at, block.size, whole);
    return answer !== 0;
  };
  try {
    await read(source, begin, take, tell);
    if (answer === 0 && block.size === 0) block.grow(0);
    return answer !== 0 ? answer : await look(block.at, block.size, block.size);
  } catch (error) {
    block.free();
    throw error;
  }
}

/** The bytes as a stream, and a promise that is rejected if reading fails. */
export function readStream(source, tell) {
  let heard;
  const done = new Promise((resolve, reject) => {
    heard = { resolve, reject };
  });
  const { readable, writable } = new TransformStream();
  const writer = writable.getWriter();
  read(source, () => {}, (piece) => writer.write(piece), tell)
    .then(() => writer.close())
    .then(heard.resolve, (error) => {
      heard.reject(error);
      return writer.abort(error);
    })
    .catch(() => {}); // the reader is gone
  done.catch(() => {});
  return { readable, done };
}

/** The bytes as a Blob; a file or a Blob is not read. */
export async function openBlob(source) {
  if (typeof Blob === 'function' && source instanceof Blob) return source;
  const url = typeof source === 'string' || source instanceof URL ? resolve(source) : null;
  if (url?.protocol !== 'file:' || host.openBlob === null) return new Blob([await readAll(source, () => {})]);
  try {
    return await host.openBlob(url);
  } catch (error) {
    throw new BerthError('IO', `cannot read ${source}: ${error.message}`);
  }
}

/** All bytes as one array. */
export async function readAll(source, tell) {
  const pieces = [];
  await read(source, () => {}, (piece) => pieces.push(piece), tell);
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  pieces.reduce((at, piece) => (bytes.set(piece, at), at + piece.length), 0);
  return bytes;
}
