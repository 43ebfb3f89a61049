// Serves build/web to this machine alone, packed, with the types and headers that WebAssembly and threads want. Any static
// server will do: the page's service worker adds the headers itself after the first load.
// Usage: node scripts/serve-web.mjs [FOLDER [PORT]]
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize, resolve } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const folder = resolve(process.argv[2] ?? 'build/web');
const port = Number(process.argv[3] ?? 8080);
const types = {
  '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8',
  '.wasm': 'application/wasm', '.svg': 'image/svg+xml', '.webmanifest': 'application/manifest+json',
};

/** The file behind an address, or null; nothing outside of the folder. */
function fileOf(url) {
  const path = normalize(decodeURIComponent(new URL(url, 'http://localhost').pathname));
  const file = join(folder, path.endsWith('/') ? `${path}index.html` : path);
  return file.startsWith(folder) && existsSync(file) && statSync(file).isFile() ? file : null;
}

const packers = {
  br: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (bytes) => gzipSync(bytes, { level: 9 }),
};
const PACKED = /\.(html|js|css|wasm|svg|webmanifest|berth)$/;
const kept = new Map(); // what was packed once, by file, time and coding

/** A file as the request takes it: { bytes, coding, tag }. */
function contentOf(file, accepted) {
  const coding = PACKED.test(file) ? Object.keys(packers).find((name) => accepted.includes(name)) ?? '' : '';
  const key = `${coding} ${statSync(file).mtimeMs} ${file}`;
  if (!kept.has(key)) {
    const plain = readFileSync(file);
    const bytes = coding ? packers[coding](plain) : plain;
    kept.set(key, { bytes, coding, tag: `"${createHash('sha256').update(bytes).digest('hex').slice(0, 24)}"` });
  }
  return kept.get(key);
}

function answer(request, response) {
  let file = null;
  try {
    file = fileOf(request.url);
  } catch { /* no address at all */ }
  if (file === null || request.method !== 'GET') {
    response.writeHead(file === null ? 404 : 405).end();
    return;
  }
  const { bytes, coding, tag } = contentOf(file, request.headers['accept-encoding'] ?? '');
  const isKnown = request.headers['if-none-match'] === tag;
  response.writeHead(isKnown ? 304 : 200, {
    'Content-Type': types[extname(file)] ?? 'application/octet-stream',
    ...(coding ? { 'Content-Encoding': coding } : {}),
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Embedder-Policy': 'require-corp',
    'Cache-Control': 'no-cache',
    ETag: tag,
    Vary: 'Accept-Encoding',
  });
  response.end(isKnown ? undefined : bytes);
}

if (!existsSync(join(folder, 'index.html'))) {
  console.error(`${folder}/index.html is not there; 'make web' makes it`);
  process.exit(1);
}
const server = createServer(answer);
server.on('error', ({ message }) => {
  console.error(`serve-web: ${message}; 'make serve PORT=N' takes another port`);
  process.exit(1);
});
server.listen(port, '127.0.0.1', () => console.log(`http://localhost:${server.address().port}/ shows ${folder}; Ctrl-C ends it`));
