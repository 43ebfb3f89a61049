/* One instance of the WebAssembly module: its memory, its texts, and serialised calls. */
import { wasiImports } from './wasi.js';
import { WebGPU } from './webgpu.js';

export class BerthError extends Error {
  constructor(status, message) {
    super(message);
    this.name = 'BerthError';
    this.status = status;
  }
}

/** Calls `onProgress`, if there is one. Its exceptions are reported to the host, and stop nothing, because C may be on
 * the stack. */
export const listener = (onProgress) => (progress) => {
  try {
    onProgress?.(progress);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
};

const encoder = new TextEncoder(), decoder = new TextDecoder();

/* Numbers are signed; negative ones are addresses in the upper half of the memory. */
const unsigned = (result) => (result < 0 ? result >>> 0 : result);

export class Program {
  #exports;
  #promising = new Map();
  #last = Promise.resolve();
  #view = new Uint8Array(0);
  #ended = ''; // why it can no longer be used

  #tell = listener(); // receives C's progress in the job

  /** `memory`: shared by `threads`; null: the module's own, without threads. */
  constructor(module, memory, threads) {
    this.memory = memory;
    this.threads = threads;
    this.webgpu = new WebGPU();
    const instance = new WebAssembly.Instance(module, {
      wasi_snapshot_preview1: wasiImports(() => this.memory),
      webgpu: this.webgpu.imports,
      host: { progress: (stage, done, total) => this.#tell({ stage: this.text(stage >>> 0), done, total }) },
      env: { memory },
    });
    this.#exports = instance.exports;
    this.memory ??= instance.exports.memory;
    this.webgpu.memory = this.memory;
    this.#exports._initialize();
    if (threads !== null) this.#exports.__wasm_init_tls(this.alloc(this.now('thread_local_size')));
  }

  close() {
    this.#ended ||= 'berth is closed';
    this.threads?.close();
    this.webgpu.close();
  }

  /** Throws if it can no longer be used. */
  check() {
    if (this.#ended !== '') throw new BerthError('INVALID', this.#ended);
  }

  /** Runs `job` after all previous ones: the results of a call (an error, a text) stay valid until the end of its job.
   * C's stack has room for one call that waits for a GPU. */
  queue(job, onProgress) {
    const turn = this.#last.then(() => {
      this.#tell = listener(onProgress);
      return job();
    });
    this.#last = turn.catch(() => {});
    return turn;
  }

  get hasDeadThread() {
    return this.#exports.thread_dead() !== 0;
  }

  /* After a trap the module's state is undefined, so it is not used any more. */
  #stopped(error) {
    if (!(error instanceof WebAssembly.RuntimeError || error instanceof RangeError)) return error;
    const what = this.hasDeadThread ? 'one of its threads stopped' : error.message;
    this.#ended = `berth stopped at an error of its own (${what}); load it again`;
    return new BerthError('INTERNAL', this.#ended);
  }

  /** Calls a function that does not use a device. */
  now(name, ...args) {
    this.check();
    try {
      return unsigned(this.#exports[name](...args));
    } catch (error) {
      throw this.#stopped(error);
    }
  }

  /** Calls a function that may use a device, and so may wait for it. Only inside a job. */
  async call(name, ...args) {
    if (typeof WebAssembly.promising !== 'function') return this.now(name, ...args);
    this.check();
    let promising = this.#promising.get(name);
    if (promising === undefined) {
      promising = WebAssembly.promising(this.#exports[name]);
      this.#promising.set(name, promising);
    }
    try {
      return unsigned(await promising(...args));
    } catch (error) {
      throw this.#stopped(error);
    }
  }

  /** The result of a function; if it is 0, throws the error that it has left. */
  need(result) {
    if (result !== 0) return result;
    throw new BerthError(this.text(this.now('status')), this.text(this.now('error')));
  }

  /** A view that becomes invalid when the memory grows. */
  get bytes() {
    if (this.#view.buffer !== this.memory.buffer) this.#view = new Uint8Array(this.memory.buffer);
    return this.#view;
  }

  text(at) {
    const end = this.bytes.indexOf(0, at);
    return decoder.decode(this.bytes.slice(at, end)); // a copy: decoders do not accept shared memory
  }

  json(at) {
    return JSON.parse(this.text(this.need(at)));
  }

  alloc(size) {
    const at = size <= 0xffff_ffff ? this.now('alloc', size) : 0;
    if (at !== 0) return at;
    throw new BerthError('NOMEM', `there is no room for ${size} bytes; WebAssembly has at most 4 GiB`);
  }

  free(at) {
    this.now('free', at);
  }

  /** Calls `use` with texts in C's memory, in a block that is freed afterwards. */
  async withTexts(texts, use) {
    const encoded = texts.map((text) => encoder.encode(text + '\0'));
    const block = this.alloc(encoded.reduce((sum, text) => sum + text.length, 0));
    try {
      let at = block;
      const places = encoded.map((text) => {
        this.bytes.set(text, at);
        at += text.length;
        return at - text.length;
      });
      return await use(places);
    } finally {
      this.free(block);
    }
  }
}
