/* Where bytes come from: addresses, files, and what is in memory already. */
import { BerthError } from './program.js';

export const isNode = typeof process === 'object' && process.versions?.node !== undefined;

const bytesOf = (view) => new Uint8Array(view.buffer ?? view, view.byteOffset ?? 0, view.byteLength);

async function* piecesOf(stream) {
  const reader = stream.getReader();
  try {
    for (let piece; !(piece = await reader.read()).done;) yield piece.value;
  } finally {
    reader.releaseLock();
  }
}

async function openFile(url) {
  const { createReadStream } = await import('node:fs');
  const { stat } = await import('node:fs/promises');
  const { size } = await stat(url);
  return { pieces: createReadStream(url, { highWaterMark: 1 << 20 }), total: size };
}

async function openAddress(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  const isPacked = response.headers.get('content-encoding') !== null; // then its length is that of the packed bytes
  const total = isPacked ? 0 : Number(response.headers.get('content-length') ?? 0);
  return { pieces: piecesOf(response.body), total };
}

async function resolve(source) {
  if (source instanceof URL || !isNode || URL.canParse?.(source)) return new URL(source, globalThis.location?.href);
  const { pathToFileURL } = await import('node:url');
  return pathToFileURL(source);
}

/* { pieces, total }: Uint8Arrays one after the other, and how many bytes there are (0: nobody knows). */
async function open(source) {
  if (typeof source === 'string' || source instanceof URL) {
    const url = await resolve(source);
    return url.protocol === 'file:' && isNode ? openFile(url) : openAddress(url);
  }
  if (typeof Blob === 'function' && source instanceof Blob)
    return { pieces: piecesOf(source.stream()), total: source.size };
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) {
    const bytes = bytesOf(source);
    return { pieces: [bytes], total: bytes.length };
  }
  throw new BerthError('INVALID', 'a model is an address, a Blob, an ArrayBuffer or a view of one');
}

/* Gives every piece to `take`, and tells how far it is. What goes wrong on the way is an error of berth's. */
async function read(source, begin, take, tell) {
  try {
    const { pieces, total } = await open(source);
    let size = 0;
    begin(total);
    for await (const piece of pieces) {
      take(piece);
      size += piece.length;
      tell(size, total);
    }
  } catch (error) {
    if (error instanceof BerthError) throw error;
    const what = typeof source === 'string' || source instanceof URL ? String(source) : 'the bytes';
    throw new BerthError('IO', `cannot read ${what}: ${error.cause?.message ?? error.message}`);
  }
}

/** The bytes in the memory of `program`, once: { at, size }; `at` is to be freed. */
export async function readInto(program, source, tell) {
  let at = 0, room = 0, size = 0;
  const grow = (wanted) => {
    const larger = program.alloc(wanted);
    if (at !== 0) {
      program.bytes.copyWithin(larger, at, at + size);
      program.free(at);
    }
    at = larger;
    room = wanted;
  };
  const take = (piece) => {
    if (size + piece.length > room) grow(Math.max(size + piece.length, room + Math.floor(room / 2)));
    program.bytes.set(piece, at + size);
    size += piece.length;
  };
  try {
    await read(source, grow, take, tell);
  } catch (error) {
    if (at !== 0) program.free(at);
    throw error;
  }
  return { at, size };
}

/** All bytes as one array. */
export async function readAll(source, tell) {
  const pieces = [];
  await read(source, () => {}, (piece) => pieces.push(piece), tell);
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  pieces.reduce((at, piece) => (bytes.set(piece, at), at + piece.length), 0);
  return bytes;
}
