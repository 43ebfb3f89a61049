/** The last model, stored in this browser: a file with its bytes, anything else by its address. */
import { $, el } from './dom.js';

const MOST = 512 * 1024 * 1024; // bytes of files that are stored
const STORE = 'last';
const KEY = 'model',
  FIELDS = 'fields'; // separate, since a file is written once and fields change often

function database() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open('berth', 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function store(mode, act) {
  const db = await database();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = db.transaction(STORE, mode);
      const request = act(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
      transaction.onerror = () => reject(transaction.error);
    });
  } finally {
    db.close();
  }
}

const filesOf = (source) => Object.values(source).flat().filter((part) => part instanceof Blob);

/** What was stored: { source, dims, budget }; null if nothing was, or this browser stores nothing. */
export async function keptModel() {
  try {
    const source = await store('readonly', (all) => all.get(KEY));
    return source ? { source, ...(await store('readonly', (all) => all.get(FIELDS))) } : null;
  } catch {
    return null;
  }
}

function say(name, forget) {
  $('kept').replaceChildren(
    ...(name
      ? [
          el('span', { text: `${name} is kept in this browser, and opens again when you come back. ` }),
          el('button', { type: 'button', class: 'link', 'data-test': 'forget', text: 'Forget it', onclick: forget }),
        ]
      : []),
  );
  $('kept').hidden = !name;
}

export async function forgetModel() {
  try {
    await store('readwrite', (all) => all.clear());
  } catch {
    /* then nothing was stored either */
  }
  written = null;
  delete document.documentElement.dataset.kept;
  say('');
}

let last = Promise.resolve();
let written = null; // the stored source
let unwanted = null; // the source to be removed

/**
 * Stores what is open, one write at a time; skips what is too large, or comes with the page anyway. `key` identifies
 * sources.
 */
export function keepModel(source, key, dims, budget) {
  last = last.then(async () => {
    const size = filesOf(source).reduce((sum, file) => sum + file.size, 0);
    if (key === unwanted) return undefined;
    if (source.builtIn || size > MOST) return forgetModel();
    try {
      await store('readwrite', (all) => all.put({ dims, budget }, FIELDS));
      if (written !== key) await store('readwrite', (all) => all.put(source, KEY));
      written = key;
      document.documentElement.dataset.kept = source.name;
      say(source.name, () => {
        unwanted = key;
        forgetModel();
      });
    } catch {
      await forgetModel(); // no space, or a private window
    }
    return undefined;
  });
  return last;
}
