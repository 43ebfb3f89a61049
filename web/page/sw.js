/**
 * The service worker: keeps every file of one version of the page, and gives them with the headers that shared memory
 * (threads) needs, which plain hosting does not send.
 *
 * Versions never mix. files.js, which the build writes, has the SHA-256 of every file: one that does not match is not
 * kept, and then none is. A new version takes over only when no page of the old one is left.
 */
importScripts('files.js'); // self.BERTH = { version, files: { path: sha256 } }

const { version, files } = self.BERTH;
const CACHE = `berth-${version}`;
const root = new URL('./', self.location.href);

const types = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  wasm: 'application/wasm',
  svg: 'image/svg+xml',
  webmanifest: 'application/manifest+json',
  berth: 'text/plain; charset=utf-8',
};

const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

async function hashOf(bytes) {
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The bytes of a file, if they are those of this version; null otherwise. */
async function bytesOf(path, cache) {
  const response = await fetch(new URL(path, root), { cache });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  const bytes = await response.arrayBuffer();
  return (await hashOf(bytes)) === files[path] ? bytes : null;
}

/** The file as this version has it. What the page has fetched just now is not fetched again; but the page itself says
 * whether the server has all of this version. */
async function fetchFile(path) {
  const first = path === 'index.html' ? 'no-cache' : 'force-cache';
  const bytes = (await bytesOf(path, first)) ?? (await bytesOf(path, 'reload'));
  if (bytes === null) throw new Error(`${path} is of another version`);
  const type = types[path.split('.').pop()] ?? 'application/octet-stream';
  return new Response(bytes, { headers: { 'Content-Type': type, ...isolation } });
}

/** Of the two modules, the package takes the one with threads wherever there can be shared memory (threads.js). */
function otherModule() {
  try {
    new WebAssembly.Memory({ initial: 1, maximum: 65536, shared: true });
    return 'package/berth.wasm';
  } catch {
    return 'package/berth-threads.wasm';
  }
}

async function install() {
  const cache = await caches.open(CACHE);
  const unused = otherModule();
  const wanted = Object.keys(files).filter((path) => path !== unused);
  await Promise.all(wanted.map(async (path) => cache.put(new URL(path, root), await fetchFile(path))));
}

async function removeOthers() {
  const names = await caches.keys();
  await Promise.all(
    names.filter((name) => name.startsWith('berth-') && name !== CACHE).map((name) => caches.delete(name)),
  );
}

async function answer(path) {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(new URL(path, root));
  if (kept) return kept;
  const fresh = await fetchFile(path); // the browser threw it away
  await cache.put(new URL(path, root), fresh.clone());
  return fresh;
}

async function update(port) {
  const pages = await self.clients.matchAll({ type: 'window', includeUncontrolled: true });
  if (pages.length > 1) port.postMessage('others');
  else await self.skipWaiting();
}

self.addEventListener('install', (event) => event.waitUntil(install()));
self.addEventListener('activate', (event) => event.waitUntil(removeOthers()));
self.addEventListener('message', (event) => event.data === 'update' && event.waitUntil(update(event.ports[0])));
self.addEventListener('fetch', (event) => {
  const { method, url } = event.request;
  if (method !== 'GET' || !url.startsWith(root.href)) return;
  const path = new URL(url).href.slice(root.href.length).split(/[?#]/)[0] || 'index.html';
  if (path in files) event.respondWith(answer(path).catch(() => Response.error()));
});
