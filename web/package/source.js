/* Where bytes come from: addresses, files, and what is in memory already. */
import { BerthError } from './program.js';

export const isNode = typeof process === 'object' && process.versions?.node !== undefined;

const copyOf = (view) => new Uint8Array(view.buffer ?? view, view.byteOffset ?? 0, view.byteLength);

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
  try {
    return { pieces: createReadStream(url, { highWaterMark: 1 << 20 }), total: (await stat(url)).size };
  } catch (error) {
    throw new BerthError('IO', `cannot read ${url.pathname}: ${error.message}`);
  }
}

async function openAddress(address) {
  let response;
  try {
    response = await fetch(address);
  } catch (error) {
    throw new BerthError('IO', `cannot fetch ${address}: ${error.message}`);
  }
  if (!response.ok) throw new BerthError('IO', `cannot fetch ${address}: ${response.status} ${response.statusText}`);
  const isPacked = response.headers.get('content-encoding') !== null; // then its length is that of the packed bytes
  const total = isPacked ? 0 : Number(response.headers.get('content-length') ?? 0);
  return { pieces: piecesOf(response.body), total };
}

async function resolve(source) {
  if (source instanceof URL || !isNode || URL.canParse?.(source)) return new URL(source, globalThis.location?.href);
  const { pathToFileURL } = await import('node:url');
  return pathToFileURL(source);
}

/** { pieces, total }: Uint8Arrays one after the other, and how many bytes there are (0: nobody knows). */
export async function open(source) {
  if (typeof source === 'string' || source instanceof URL) {
    const url = await resolve(source);
    return url.protocol === 'file:' && isNode ? openFile(url) : openAddress(url);
  }
  if (typeof Blob === 'function' && source instanceof Blob)
    return { pieces: piecesOf(source.stream()), total: source.size };
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) {
    const bytes = copyOf(source);
    return { pieces: [bytes], total: bytes.length };
  }
  throw new BerthError('INVALID', 'a model is an address, a Blob, an ArrayBuffer or a view of one');
}

/** The bytes in the memory of `program`, once: { at, size }; `at` is to be freed. */
export async function readInto(program, source, tell) {
  const { pieces, total } = await open(source);
  let room = Math.max(total, 1), at = program.alloc(room), size = 0;
  try {
    for await (const piece of pieces) {
      if (size + piece.length > room) {
        room = Math.max(size + piece.length, room + (room >> 1));
        const larger = program.alloc(room);
        program.bytes.copyWithin(larger, at, at + size);
        program.free(at);
        at = larger;
      }
      program.bytes.set(piece, at + size);
      size += piece.length;
      tell(size, total);
    }
  } catch (error) {
    program.free(at);
    throw error;
  }
  return { at, size };
}

/** All bytes as one array. */
export async function readAll(source, tell) {
  const { pieces, total } = await open(source);
  const list = [];
  let size = 0;
  for await (const piece of pieces) {
    list.push(piece);
    size += piece.length;
    tell(size, total);
  }
  const bytes = new Uint8Array(size);
  for (let at = 0, i = 0; i < list.length; at += list[i++].length) bytes.set(list[i], at);
  return bytes;
}
