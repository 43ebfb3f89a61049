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

/** The file as this version has it, from the network. */
async function fetchFile(path) {
  const response = await fetch(new URL(path, root), { cache: 'no-cache' });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  const bytes = await response.arrayBuffer();
  if ((await hashOf(bytes)) !== files[path]) throw new Error(`${path} is of another version`);
  const type = types[path.split('.').pop()] ?? 'application/octet-stream';
  return new Response(bytes, { headers: { 'Content-Type': type, ...isolation } });
}

async function install() {
  const cache = await caches.open(CACHE);
  await Promise.all(Object.keys(files).map(async (path) => cache.put(new URL(path, root), await fetchFile(path))));
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
