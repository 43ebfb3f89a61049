/** The last model, kept in this browser across a reload: a file with its bytes, anything else by its address. */
import { $, el } from './dom.js';

const MOST = 512 * 1024 * 1024; // bytes of files that are kept
const STORE = 'last';
const KEY = 'model',
  FIELDS = 'fields'; // apart, since a file is written once and fields change often

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

/** What was kept: { source, dims, budget }; null where nothing was, or this browser keeps nothing. */
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
    /* then it was not kept either */
  }
  written = null;
  delete document.documentElement.dataset.kept;
  say('');
}

let last = Promise.resolve();
let written = null; // the source that is kept
let unwanted = null; // the one that was to be forgotten

/** Keeps what is open, one after the other; what is too large, or comes with the page anyway, is not kept. `key` tells
 * sources apart. */
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
      await forgetModel(); // no room, or a window that keeps nothing
    }
    return undefined;
  });
  return last;
}
