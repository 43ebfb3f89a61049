/** A plain static server, like any host of the page: no headers but the type, and the given ones. */
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { gzipSync } from 'node:zlib';

const types = {
  '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8',
  '.wasm': 'application/wasm', '.svg': 'image/svg+xml', '.webmanifest': 'application/manifest+json',
};

const packed = new Map();

/** Like most hosts: compresses text and WebAssembly. */
function pack(file, bytes) {
  if (!packed.has(file)) packed.set(file, gzipSync(bytes));
  return packed.get(file);
}

/**
 * `headers`: additional ones; `isPacked`: compresses what can be compressed. `url`, `close()`, `sent`: bytes so far,
 * and `log`: requested paths in order, with the bytes sent.
 */
export async function serve(folder, headers = {}, isPacked = false) {
  let sent = 0;
  const log = [];
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://host').pathname));
    const entry = { path, bytes: 0 };
    log.push(entry);
    try {
      const file = join(folder, path.endsWith('/') ? `${path}index.html` : path);
      const bytes = await readFile(file);
      const type = types[extname(file)];
      const body = isPacked && type ? pack(file, bytes) : bytes;
      const coding = body === bytes ? {} : { 'Content-Encoding': 'gzip' };
      sent += body.length;
      entry.bytes = body.length;
      response.writeHead(200, { 'Content-Type': type ?? 'application/octet-stream', ...coding, ...headers });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    log,
    get sent() {
      return sent;
    },
    url: `http://127.0.0.1:${server.address().port}/`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
