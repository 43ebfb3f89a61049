/* berth in a browser or in Node. The interface is in berth.d.ts. */
import { Model } from './model.js';
import { BerthError, Program } from './program.js';
import { readAll, readInto } from './source.js';

export { BerthError };

class Berth {
  #program;

  constructor(program, threads) {
    this.#program = program;
    this.version = program.text(program.now('version'));
    this.threads = threads;
  }

  async devices() {
    const program = this.#program;
    const list = await program.queue(async () => program.json(await program.call('devices')));
    return list.filter(({ name }) => name !== 'loops'); // the interpreter of kernels, for tests
  }

  async model(source, { name, onProgress = () => {} } = {}) {
    const program = this.#program;
    const tell = (done, total) => onProgress({ stage: 'reading the model', done, total });
    const { at, size } = await readInto(program, source, tell);
    return program.queue(() => this.#describe(program.now('graph', at, size), name));
  }

  async digits() {
    return this.#program.queue(() => this.#describe(this.#program.now('digits')));
  }

  #describe(graph, name) {
    const program = this.#program;
    program.need(graph);
    return new Model(program, graph, program.json(program.now('describe', graph)), name);
  }

  memory() {
    return { total: this.#program.memory.buffer.byteLength, used: this.#program.now('used') };
  }

  close() {
    this.#program.webgpu.close();
  }
}

export async function load({ base = new URL('.', import.meta.url), onProgress = () => {} } = {}) {
  const tell = (done, total) => onProgress({ stage: 'fetching the program', done, total });
  const bytes = await readAll(new URL('berth.wasm', new URL(base, globalThis.location?.href)), tell);
  const program = new Program(await WebAssembly.compile(bytes), null);
  program.need(program.now('start', 1));
  return new Berth(program, 1);
}
