/** The page's side of the worker: requests that are promises. README.md has the kinds. */

/** What a request ends with when it was called off. */
export class Cancelled extends Error {
  constructor() {
    super('called off');
  }
}

export class WorkerError extends Error {
  constructor({ message, status }) {
    super(message);
    this.status = status;
  }
}

export class Client {
  #worker = null;
  #waiting = new Map();
  #nextId = 1;

  #start() {
    this.#worker = new Worker(new URL('../worker.js', import.meta.url), { type: 'module', name: 'berth' });
    this.#worker.addEventListener('message', ({ data }) => this.#hear(data));
    this.#worker.addEventListener('error', (event) => {
      event.preventDefault();
      this.#end(new WorkerError({ message: event.message || 'the program of this page could not be loaded', status: '' }));
    });
  }

  #hear({ id, progress, value, error }) {
    const request = this.#waiting.get(id);
    if (!request) return;
    if (progress) {
      request.onProgress?.(progress);
      return;
    }
    this.#waiting.delete(id);
    if (error) request.reject(new WorkerError(error));
    else request.resolve(value);
  }

  #end(reason) {
    this.#worker?.terminate();
    this.#worker = null;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(reason);
  }

  /** A promise with its `id`, by which a run can be stopped. */
  call(kind, values = {}, onProgress = undefined) {
    if (!this.#worker) this.#start();
    const id = this.#nextId++;
    const promise = new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, onProgress });
      this.#worker.postMessage({ id, kind, ...values });
    });
    promise.id = id;
    return promise;
  }

  /** Lets a run of many end after the one that it is in. */
  stop(run) {
    this.#worker?.postMessage({ kind: 'stop', run });
  }

  /** Ends whatever goes on. Everything that was opened is gone; the next call starts a new worker. */
  cancelAll() {
    this.#end(new Cancelled());
  }
}
