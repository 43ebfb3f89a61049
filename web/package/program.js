/* One instance of the WebAssembly module: its memory, its texts, and calls one after the other. */
import { wasiImports } from './wasi.js';
import { WebGPU } from './webgpu.js';

export class BerthError extends Error {
  constructor(status, message) {
    super(message);
    this.name = 'BerthError';
    this.status = status;
  }
}

const encoder = new TextEncoder(), decoder = new TextDecoder();

export class Program {
  #exports;
  #promising = new Map();
  #last = Promise.resolve();
  #view = new Uint8Array(0);

  /** `memory`: what `threads` share; null: the module's own, and there are none. */
  constructor(module, memory, threads) {
    this.memory = memory;
    this.threads = threads;
    this.webgpu = new WebGPU();
    const instance = new WebAssembly.Instance(module, {
      wasi_snapshot_preview1: wasiImports(() => this.memory),
      webgpu: this.webgpu.imports,
      env: { memory },
    });
    this.#exports = instance.exports;
    this.memory ??= instance.exports.memory;
    this.webgpu.memory = this.memory;
    this.#exports._initialize();
    if (threads !== null) this.#exports.__wasm_init_tls(this.alloc(this.now('thread_local_size')));
  }

  close() {
    this.threads?.close();
    this.webgpu.close();
  }

  /** Runs `job` when all before it are done: what a call leaves behind (an error, a text) is still there for the next
   * line of its job. The stack of C has room for one call that waits for a GPU. */
  queue(job) {
    const turn = this.#last.then(job);
    this.#last = turn.catch(() => {});
    return turn;
  }

  /** Calls a function that reaches no device. Numbers come as unsigned: they are addresses. */
  now(name, ...args) {
    const result = this.#exports[name](...args);
    return Number.isInteger(result) ? result >>> 0 : result;
  }

  /** Calls a function that may reach a device, and so may wait for one. In a job alone. */
  async call(name, ...args) {
    if (typeof WebAssembly.promising !== 'function') return this.now(name, ...args);
    let promising = this.#promising.get(name);
    if (promising === undefined) {
      promising = WebAssembly.promising(this.#exports[name]);
      this.#promising.set(name, promising);
    }
    const result = await promising(...args);
    return Number.isInteger(result) ? result >>> 0 : result;
  }

  /** What a function gave, unless that is 0: then the error that it left. */
  need(result) {
    if (result !== 0) return result;
    throw new BerthError(this.text(this.now('status')), this.text(this.now('error')));
  }

  /** A view that is void when the memory has grown. */
  get bytes() {
    if (this.#view.buffer !== this.memory.buffer) this.#view = new Uint8Array(this.memory.buffer);
    return this.#view;
  }

  text(at) {
    const end = this.bytes.indexOf(0, at);
    return decoder.decode(this.bytes.slice(at, end)); // a copy: decoders take no shared memory
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

  /** Lets `use` see texts as C has them, in a block that is gone afterwards. */
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
