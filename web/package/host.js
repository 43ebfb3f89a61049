/* What differs between hosts. Here is what browsers have; node.js puts in what Node has, before anything is loaded. */
export const host = {
  /** `{ pieces, total }` of a file: URL; null: there are no files. */
  openFile: null,
  /** A file: URL as a Blob, of which nothing is read yet; null: there are no files. */
  openBlob: null,
  /** A path as a URL; null: a string is an address. */
  pathToUrl: null,
  threads: () => globalThis.navigator?.hardwareConcurrency ?? 1,
  hasOneModule: true, // what is fetched counts
  isIsolated: () => globalThis.crossOriginIsolated === true,
  /* Bundlers look for just these words, and carry the script along. */
  newWorker: () => new Worker(new URL('./thread.js', import.meta.url), { type: 'module', name: 'berth-thread' }),
  listen: (worker, event, heard) => worker.addEventListener(event, heard, { once: true }),
};
