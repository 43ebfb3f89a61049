/* berth in a browser or in Node. The interface is in berth.d.ts. */
import { withExternalData } from './external.js';
import { openGguf } from './gguf.js';
import { Model } from './model.js';
import { joinParts } from './parts.js';
import { BerthError, Program, listener } from './program.js';
import { readAll, readInto, readStream } from './source.js';
import { Threads, canShare, defaultThreads, memoryFor } from './threads.js';

export { BerthError };

/** Joins a model with the files of its external weights. */
async function joined(source, files, tell) {
  const given = {};
  for (const [name, from] of Object.entries(files)) given[name] = await readAll(from, tell);
  return new Blob(withExternalData(await readAll(source, tell), given));
}

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
    return list.filter(({ name }) => name !== 'interp'); // the interpreter of kernels, for tests
  }

  async model(source, { name, weights, files, onProgress } = {}) {
    const program = this.#program;
    const tell = (stage) => (done, total) => listener(onProgress)({ stage, done, total });
    program.check();
    const whole = files && Object.keys(files).length !== 0 ? await joined(source, files, tell('reading the weights')) : source;
    const model = await readInto(program, whole, tell('reading the model'));
    let beside = { at: 0, size: 0 };
    try {
      if (weights !== undefined) beside = await readInto(program, weights, tell('reading the weights'));
    } catch (error) {
      program.free(model.at);
      throw error;
    }
    return program.queue(() =>
      this.#describe(program.now('graph', model.at, model.size, beside.at, beside.size), name));
  }

  async gguf(source, { name, parts = [], onProgress } = {}) {
    const whole = parts.length === 0 ? source : await joinParts([source, ...parts]);
    return openGguf(this.#program, whole, name, onProgress);
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
    this.#program.close();
  }
}

function countThreads(wanted) {
  if (wanted === undefined) return canShare() ? defaultThreads() : 1;
  if (!Number.isInteger(wanted) || wanted < 1)
    throw new BerthError('INVALID', `threads takes a whole number from 1 on, not ${wanted}`);
  return canShare() ? wanted : 1;
}

/* Bundlers look for exactly these expressions, and include the files. */
const modules = {
  'berth.wasm': () => new URL('./berth.wasm', import.meta.url),
  'berth-threads.wasm': () => new URL('./berth-threads.wasm', import.meta.url),
};

/** Compiles while bytes arrive. */
async function compile(at, tell) {
  if (typeof WebAssembly.compileStreaming !== 'function') return WebAssembly.compile(await readAll(at, tell));
  const { readable, done } = readStream(at, tell);
  try {
    return await WebAssembly.compileStreaming(new Response(readable, { headers: { 'Content-Type': 'application/wasm' } }));
  } catch (error) {
    await done; // the cause may be a read error
    throw error;
  }
}

async function fetchModule(base, isShared, onProgress) {
  const name = isShared ? 'berth-threads.wasm' : 'berth.wasm';
  const tell = (done, total) => listener(onProgress)({ stage: 'fetching the program', done, total });
  return compile(base === undefined ? modules[name]() : new URL(name, new URL(base, globalThis.location?.href)), tell);
}

/** Which of the two modules it is: berth-threads.wasm imports its memory. */
const takesMemory = (module) => WebAssembly.Module.imports(module).some(({ kind }) => kind === 'memory');

/** A precompiled module. */
async function givenModule(given, isShared) {
  const module = await given;
  if (!(module instanceof WebAssembly.Module))
    throw new BerthError('INVALID', 'module takes a WebAssembly.Module, compiled of berth-threads.wasm or berth.wasm');
  if (takesMemory(module) && !isShared)
    throw new BerthError('UNSUPPORTED', 'the module is berth-threads.wasm, and there is no shared memory here; berth.wasm needs none');
  return module;
}

export async function load({ base, module: given, threads: wanted, onProgress } = {}) {
  let threads = countThreads(wanted), memory = memoryFor(threads);
  const isShared = memory !== null;
  const module = await (given === undefined ? fetchModule(base, isShared, onProgress) : givenModule(given, isShared));
  if (isShared && !takesMemory(module)) [threads, memory] = [1, null];
  const program = new Program(module, memory, memory !== null ? new Threads(module, threads - 1) : null);
  program.need(program.now('start', threads));
  try {
    await program.threads?.reserve(program);
  } catch (error) {
    program.close();
    throw error;
  }
  return new Berth(program, threads);
}
