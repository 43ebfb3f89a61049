/* Threads: workers that are started in advance, so that C can give them work without returning to JavaScript. Each
 * session has its own threads, which sleep while others run. */
import { BerthError } from './program.js';
import { host } from './host.js';

const DEFAULT_MOST = 8; // more seldom help, and each has a stack
const STACK = 1 << 20; // bytes
const INITIAL = 64; // pages, as in cmake/Wasm.cmake
const MAXIMUM = 65536, LEAST_MAXIMUM = 4096;

/** Whether memory can be shared, and this thread may block. */
export function canShare() {
  try {
    const word = new Int32Array(new SharedArrayBuffer(4));
    Atomics.wait(word, 0, 1, 0); // throws on the main thread of a page, which must not block
    return host.isIsolated();
  } catch {
    return false;
  }
}

export const defaultThreads = () => Math.min(host.threads(), DEFAULT_MOST);

const sharedMemory = (maximum) => new WebAssembly.Memory({ initial: INITIAL, maximum, shared: true });

/** A memory with the largest maximum that the machine allows. */
function largestMemory() {
  for (let maximum = MAXIMUM; ; maximum /= 2) {
    try {
      return sharedMemory(maximum);
    } catch (error) {
      if (maximum <= LEAST_MAXIMUM) throw new BerthError('NOMEM', `there is no shared memory: ${error.message}`);
    }
  }
}

/** A shared memory for the module with threads; null: the other module brings its own. A page that is not isolated can
 * create one too, but must not share it. It still uses the module with threads, which is then already cached when the
 * page is isolated, at the next visit. */
export function memoryFor(threads) {
  if (threads > 1) return largestMemory();
  try {
    return host.hasOneModule ? sharedMemory(MAXIMUM) : null;
  } catch {
    return null;
  }
}

export class Threads {
  #module;
  #each;
  #workers = [];

  /** `each`: threads per session. */
  constructor(module, each) {
    this.#module = module;
    this.#each = each;
  }

  /** Starts workers until there are enough for one more session. */
  async reserve(program) {
    const starting = [];
    for (let idle = program.now('thread_idle'); idle < this.#each; idle++) starting.push(this.#start(program));
    await Promise.all(starting);
  }

  async #start(program) {
    const number = this.#workers.length;
    this.#workers.push(null);
    program.need(program.now('thread_add', number));
    const stack = program.alloc(STACK) + STACK, tls = program.alloc(program.now('thread_local_size'));
    const worker = host.newWorker();
    this.#workers[number] = worker;
    await new Promise((resolve, reject) => {
      host.listen(worker, 'message', resolve);
      host.listen(worker, 'error', (error) => {
        // The message that a thread has died may overtake the one that it has begun: then it ends the wait.
        if (program.hasDeadThread) resolve();
        else reject(new BerthError('NOMEM', `a thread cannot be started: ${error.message ?? 'thread.js was not found'}`));
      });
      worker.postMessage({ module: this.#module, memory: program.memory, number, stack, tls });
    });
    worker.unref?.(); // does not keep Node running
  }

  close() {
    for (const worker of this.#workers) worker?.terminate();
    this.#workers = [];
  }
}
