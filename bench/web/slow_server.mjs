/**
 * A static server with a simulated slow connection: all connections share a bandwidth, every request takes a round trip
 * before its first byte arrives, and a new connection one more. TCP slow start and lost packets are not simulated. (A
 * browser's own throttling does not affect requests of workers.)
 */
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';

const types = {
  '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8',
  '.wasm': 'application/wasm', '.svg': 'image/svg+xml', '.webmanifest': 'application/manifest+json',
};
const PIECE = 4096; // bytes that one response sends per turn
const HEAD = 250; // approximate bytes of a response's header

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The shared connection: pieces of all responses in turn, at its rate. */
class Line {
  #queue = [];
  #isBusy = false;

  constructor(bitsPerSecond) {
    this.bytesPerMs = bitsPerSecond / 8000;
  }

  async send(size, write) {
    return new Promise((done) => {
      this.#queue.push({ left: size, at: 0, write, done });
      if (!this.#isBusy) this.#work();
    });
  }

  async #work() {
    this.#isBusy = true;
    let due = performance.now();
    while (this.#queue.length > 0) {
      const job = this.#queue.shift();
      const size = Math.min(PIECE, job.left);
      due = Math.max(due, performance.now() - 4) + size / this.bytesPerMs; // a timer may be late
      const wait = due - performance.now();
      if (wait > 1) await pause(wait);
      job.write(job.at, size);
      job.at += size;
      job.left -= size;
      if (job.left > 0) this.#queue.push(job);
      else job.done();
    }
    this.#isBusy = false;
  }
}

/** `log`: the requests: `path`, `bytes` transferred, `begin` and `end` in milliseconds of performance.now(). */
export async function serveSlowly(folder, { mbit = 10, rtt = 40, coding = 'gzip' } = {}) {
  const line = new Line(mbit * 1e6);
  const packed = new Map();
  const log = [];
  const known = new WeakSet();
  const bodyOf = async (file) => {
    if (!packed.has(file)) {
      const bytes = await readFile(file);
      const pack = { gzip: (b) => gzipSync(b), br: (b) => brotliCompressSync(b) }[coding];
      packed.set(file, types[extname(file)] && pack ? { bytes: pack(bytes), coding } : { bytes });
    }
    return packed.get(file);
  };
  const server = createServer(async (request, response) => {
    const isNew = !known.has(request.socket);
    known.add(request.socket);
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://host').pathname));
    const entry = { path, bytes: 0, begin: performance.now(), end: 0 };
    log.push(entry);
    try {
      const file = join(folder, path.endsWith('/') ? `${path}index.html` : path);
      const { bytes, coding: how } = await bodyOf(file);
      await pause(isNew ? 2 * rtt : rtt);
      response.writeHead(200, {
        'Content-Type': types[extname(file)] ?? 'application/octet-stream',
        'Content-Length': bytes.length,
        'Last-Modified': 'Wed, 01 Jan 2025 00:00:00 GMT',
        ...(how ? { 'Content-Encoding': how } : {}),
      });
      await line.send(HEAD, () => {});
      await line.send(bytes.length, (at, size) => response.write(bytes.subarray(at, at + size)));
      entry.bytes = bytes.length;
      entry.end = performance.now();
      response.end();
    } catch {
      if (!response.headersSent) response.writeHead(404);
      response.end();
    }
  });
  const warm = async (paths) => Promise.all(paths.map((path) => bodyOf(join(folder, path)).catch(() => {})));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    log,
    warm,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
