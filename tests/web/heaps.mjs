/** The JavaScript heaps of a page and of its worker, after a collection, through the browser's debugging protocol. */
import { expect } from './tap.mjs';

export class Heaps {
  #page; // session of the page, through which those of workers are addressed
  #workers = new Map(); // url by session
  #answers = new Map(); // by request number
  #last = 0;

  static async of({ context, page }) {
    const own = new Heaps();
    own.#page = await context.newCDPSession(page);
    own.#page.on('Target.attachedToTarget', ({ sessionId, targetInfo }) => own.#workers.set(sessionId, targetInfo.url));
    own.#page.on('Target.detachedFromTarget', ({ sessionId }) => own.#workers.delete(sessionId));
    own.#page.on('Target.receivedMessageFromTarget', ({ message }) => own.#hear(JSON.parse(message)));
    await own.#page.send('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: false, flatten: false });
    return own;
  }

  #hear({ id, result, error }) {
    const answer = this.#answers.get(id);
    this.#answers.delete(id);
    if (error) answer?.reject(new Error(error.message));
    else answer?.resolve(result);
  }

  #ask(sessionId, method) {
    const id = ++this.#last;
    const answer = new Promise((resolve, reject) => this.#answers.set(id, { resolve, reject }));
    const message = JSON.stringify({ id, method });
    return this.#page.send('Target.sendMessageToTarget', { sessionId, message }).then(() => answer);
  }

  static async #bytes(send) {
    for (let i = 0; i < 3; i++) await send('HeapProfiler.collectGarbage'); // what the first frees may hold the next
    const { usedSize, backingStorageSize = 0 } = await send('Runtime.getHeapUsage');
    return usedSize + backingStorageSize;
  }

  /** Bytes of the page and of berth's worker; live elements and listeners, shown or not. */
  async measure() {
    const [worker] = [...this.#workers].find(([, url]) => url.endsWith('/worker.js')) ?? [];
    expect(worker, 'the page has no worker');
    const page = await Heaps.#bytes((method) => this.#page.send(method));
    const { nodes, jsEventListeners: listeners } = await this.#page.send('Memory.getDOMCounters');
    return { page, worker: await Heaps.#bytes((method) => this.#ask(worker, method)), nodes, listeners };
  }
}
