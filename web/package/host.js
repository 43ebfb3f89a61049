/* Differences between hosts. These are the values for browsers; node.js replaces them before anything is loaded. */
export const host = {
  /** `{ pieces, total }` of a file: URL; null: not supported. */
  openFile: null,
  /** A file: URL as a Blob that has not been read yet; null: not supported. */
  openBlob: null,
  /** Converts a path to a URL; null: strings are addresses. */
  pathToUrl: null,
  threads: () => globalThis.navigator?.hardwareConcurrency ?? 1,
  hasOneModule: true, // download size matters
  isIsolated: () => globalThis.crossOriginIsolated === true,
  /* Bundlers look for exactly these expressions, and include the script. */
  newWorker: () => new Worker(new URL('./thread.js', import.meta.url), { type: 'module', name: 'berth-thread' }),
  listen: (worker, event, heard) => worker.addEventListener(event, heard, { once: true }),
};
