/* GGUF files: descriptions and memory needs, from their headers only; and generators from the whole file. */
import { checkSampling, Generator } from './generator.js';
import { Handle } from './handle.js';
import { Model } from './model.js';
import { BerthError, listener } from './program.js';
import { readInto, readUntil } from './source.js';

const SLIDE = 1; // berth_generator_flag
const UNKNOWN = 2n ** 62n; // size of a file if it is unknown
const MOST_CTX = 2 ** 31 - 1;
const STRAIGHT = 12; // probes by linear interpolation, before bisection

const PLAN_OPTIONS = ['device', 'ctx', 'chunk', 'kv', 'onProgress'];
const GENERATOR_OPTIONS = [...PLAN_OPTIONS, 'slide', 'sampling'];

function checkOptions(kinds, options, known) {
  for (const name of Object.keys(options))
    if (!known.includes(name)) throw new BerthError('INVALID', `there is no option '${name}'; they are ${known.join(', ')}`);
  for (const name of ['ctx', 'chunk']) {
    const { [name]: count = 1 } = options;
    if (!Number.isSafeInteger(count) || count < 1 || count > MOST_CTX)
      throw new BerthError('INVALID', `${name} takes a whole number from 1 to ${MOST_CTX}, not ${count}`);
  }
  if (options.kv !== undefined && !kinds.includes(options.kv))
    throw new BerthError('UNSUPPORTED', `there is no cache of type '${options.kv}' here; there are ${kinds.join(', ')}`);
}

export async function openGguf(program, source, name, onProgress) {
  const tell = (done, total) => listener(onProgress)({ stage: 'reading the header', done, total });
  const look = (at, size, total) => program.queue(() => {
    const gguf = program.now('gguf', at, size, total === Infinity ? UNKNOWN : BigInt(total));
    return gguf !== 0 || program.text(program.now('status')) !== 'IO' ? program.need(gguf) : 0;
  });
  program.check();
  const gguf = await readUntil(program, source, look, tell);
  return new Gguf(program, gguf, source, program.json(program.now('describe_gguf', gguf)), name);
}

class Gguf {
  #handle;
  #source;

  constructor(program, gguf, source, about, name) {
    this.#handle = new Handle(program, 'model', gguf, 'gguf_close');
    this.#source = source;
    Object.assign(this, about, { name: name ?? about.name });
  }

  async plan(options = {}) {
    const { program } = this.#handle, { device = 'cpu', ctx = 0, chunk = 0, kv = this.defaultKv } = options;
    checkOptions(this.kv, options, PLAN_OPTIONS);
    this.#mustGenerate();
    return program.queue(() => program.withTexts([kv, device], async ([kvAt, deviceAt]) => {
      listener(options.onProgress)({ stage: 'planning', done: 0, total: 0 });
      const at = await program.call('gguf_plan', this.#handle.at, kvAt, deviceAt, BigInt(ctx), BigInt(chunk));
      return { device, ...program.json(at) };
    }), options.onProgress);
  }

  /* The arena grows almost linearly with the context: searches for the largest context that fits by interpolation. */
  async fit(bytes, options = {}) {
    const { ctx: most = this.context || MOST_CTX, ...rest } = options;
    checkOptions(this.kv, options, PLAN_OPTIONS);
    if (!(bytes >= 0)) throw new BerthError('INVALID', `fit takes a number of bytes, not ${bytes}`);
    const plan = (ctx) => this.plan({ ...rest, ctx });
    let high = await plan(most);
    if (high.arena_size <= bytes) return high;
    let low = await plan(1);
    if (low.arena_size > bytes) return null;
    for (let tries = 0; high.ctx - low.ctx > 1; tries++) { // low fits, high does not
      const share = tries < STRAIGHT ? (bytes - low.arena_size) / (high.arena_size - low.arena_size) : 0.5;
      const step = Math.floor(share * (high.ctx - low.ctx));
      const middle = await plan(Math.min(Math.max(low.ctx + step, low.ctx + 1), high.ctx - 1));
      if (middle.arena_size <= bytes) low = middle;
      else high = middle;
    }
    return low;
  }

  async model({ kv = this.defaultKv } = {}) {
    const { program } = this.#handle;
    checkOptions(this.kv, { kv }, ['kv']);
    return program.queue(() => program.withTexts([kv], ([kvAt]) => {
      const graph = program.need(program.now('gguf_graph', this.#handle.at, kvAt));
      return new Model(program, graph, program.json(program.now('describe', graph)), this.name);
    }));
  }

  async generator(options = {}) {
    const { program } = this.#handle, { device = 'cpu', ctx = 0, chunk = 0, kv = this.defaultKv, slide = false } = options;
    checkOptions(this.kv, options, GENERATOR_OPTIONS);
    checkSampling(options.sampling);
    this.#mustGenerate();
    const tell = (done, total) => listener(options.onProgress)({ stage: 'reading the model', done, total });
    const file = await readInto(program, this.#source, tell);
    let isTaken = false; // by C, even if it fails
    const generator = await program.queue(async () => {
      await program.threads?.reserve(program);
      return program.withTexts([device, kv], async ([deviceAt, kvAt]) => {
        isTaken = true;
        const flags = slide ? SLIDE : 0;
        const at = await program.call('generator', file.at, file.size, deviceAt, kvAt, ctx, chunk, flags);
        return new Generator(program, program.need(at), device);
      });
    }, options.onProgress).catch((error) => {
      if (!isTaken) file.free();
      throw error;
    });
    try {
      await generator.sample(options.sampling);
    } catch (error) {
      generator.close();
      throw error;
    }
    return generator;
  }

  #mustGenerate() {
    if (this.generates) return;
    throw new BerthError('UNSUPPORTED', `a model of architecture '${this.architecture}' computes text embeddings ` +
      'and generates no text');
  }

  close() {
    this.#handle.close();
  }
}
