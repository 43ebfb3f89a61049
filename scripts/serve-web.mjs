// Serves build/web to this machine alone, with the types and headers that WebAssembly and threads want. Any static
// server will do: the page's service worker adds the headers itself after the first load.
// Usage: node scripts/serve-web.mjs [FOLDER [PORT]]
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize, resolve } from 'node:path';

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

function answer(request, response) {
  let file = null;
  try {
    file = fileOf(request.url);
  } catch { /* no address at all */ }
  if (file === null || request.method !== 'GET') {
    response.writeHead(file === null ? 404 : 405).end();
    return;
  }
  response.writeHead(200, {
    'Content-Type': types[extname(file)] ?? 'application/octet-stream',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Embedder-Policy': 'require-corp',
    'Cache-Control': 'no-cache',
  });
  createReadStream(file).pipe(response);
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
