/** The page's side of the worker: requests as promises. README.md lists the kinds. */

/** The error of a cancelled request. */
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

  /** Until this is resolved only the requests of `restart` are sent. */
  ready = null;

  #start() {
    // boot.js started the first one, and the module is compiled once for all of them.
    const worker =
      window.berthWorker ?? new Worker(new URL('../worker.js', import.meta.url), { type: 'module', name: 'berth' });
    window.berthWorker = null;
    this.#worker = worker;
    window.berthModule.then(
      (module) => worker.postMessage({ kind: 'module', module }),
      ({ message }) => this.#worker === worker && this.#end(new WorkerError({ message, status: '' })),
    );
    this.#worker.addEventListener('message', ({ data }) => this.#hear(data));
    this.#worker.addEventListener('error', (event) => {
      event.preventDefault();
      this.#end(
        new WorkerError({ message: event.message || 'the program of this page could not be loaded', status: '' }),
      );
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

  #send(kind, values, onProgress, gate) {
    const id = this.#nextId++;
    const promise = new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, onProgress });
      const post = () => {
        if (this.#worker) this.#worker.postMessage({ id, kind, ...values });
        else reject(new WorkerError({ message: 'the program of this page has ended', status: '' }));
      };
      if (gate) gate.then(post, reject);
      else post();
    });
    promise.id = id;
    return promise;
  }

  /** A promise with its `id`, by which a run can be stopped. */
  call(kind, values = {}, onProgress = undefined) {
    return this.#send(kind, values, onProgress, this.ready);
  }

  /** Stops a series of runs after the current one. */
  stop(run) {
    this.#worker?.postMessage({ kind: 'stop', run });
  }

  /**
   * Terminates the worker and starts a new one, without anything that was opened. `boot(call)` makes the first
   * requests; all others wait for `ready`.
   */
  restart(boot) {
    this.#end(new Cancelled());
    this.#start();
    this.ready = boot((...request) => this.#send(...request));
    this.ready.catch(() => {}); // those who wait for it handle errors
    return this.ready;
  }
}
