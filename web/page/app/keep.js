/** The last model, kept in this browser across a reload: a file with its bytes, anything else by its address. */
import { $, el } from './dom.js';

const MOST = 512 * 1024 * 1024; // bytes of files that are kept
const STORE = 'last';
const KEY = 'model';

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
    return (await store('readonly', (all) => all.get(KEY))) ?? null;
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
    await store('readwrite', (all) => all.delete(KEY));
  } catch {
    /* then it was not kept either */
  }
  delete document.documentElement.dataset.kept;
  say('');
}

let last = Promise.resolve();

/** Keeps what is open, one after the other; what is too large, or comes with the page anyway, is not kept. */
export function keepModel(source, dims, budget) {
  last = last.then(async () => {
    const size = filesOf(source).reduce((sum, file) => sum + file.size, 0);
    if (source.builtIn || size > MOST) return forgetModel();
    try {
      await store('readwrite', (all) => all.put({ source, dims, budget }, KEY));
      document.documentElement.dataset.kept = source.name;
      say(source.name, forgetModel);
    } catch {
      await forgetModel(); // no room, or a window that keeps nothing
    }
    return undefined;
  });
  return last;
}
