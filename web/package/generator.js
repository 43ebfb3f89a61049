/* A conversation with a model; all its memory is allocated at the start. */
import { Handle } from './handle.js';
import { BerthError } from './program.js';

const SPECIAL = 1; // berth_feed_flag
const POINTER = 4;
const encoder = new TextEncoder(), decoder = new TextDecoder();

const DEFAULTS = { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05, repeatPenalty: 1, repeatLast: 64, seed: 0 };

export function checkSampling(given = {}) {
  for (const [name, value] of Object.entries(given)) {
    if (!(name in DEFAULTS))
      throw new BerthError('INVALID', `there is no '${name}' in sampling; there are ${Object.keys(DEFAULTS).join(', ')}`);
    const isWhole = ['topK', 'repeatLast', 'seed'].includes(name);
    if (!(typeof value === 'bigint' && name === 'seed') && !(isWhole ? Number.isSafeInteger(value) : Number.isFinite(value)))
      throw new BerthError('INVALID', `${name} takes a ${isWhole ? 'whole ' : ''}number, not ${value}`);
  }
}

export class Generator {
  #handle;
  #allocations = 0;

  constructor(program, generator, device) {
    this.#handle = new Handle(program, 'generator', generator, 'generator_close');
    this.device = device;
  }

  /* Calls on the CPU do not wait. */
  #call(name, ...args) {
    const { program, at } = this.#handle;
    return this.device === 'cpu' ? program.now(name, at, ...args) : program.call(name, at, ...args);
  }

  #do(name, ...args) {
    const { program } = this.#handle;
    return program.queue(async () => void program.need(await this.#call(name, ...args)));
  }

  /* Bytes in C's memory during `use`. */
  async #withBytes(bytes, use, onProgress) {
    const { program } = this.#handle;
    return program.queue(async () => {
      const at = program.alloc(bytes.length);
      try {
        program.bytes.set(bytes, at);
        return await use(at);
      } finally {
        program.free(at);
      }
    }, onProgress);
  }

  get info() {
    const { program, at } = this.#handle;
    return program.json(program.now('describe_generator', at));
  }

  get tokens() {
    const { program, at } = this.#handle;
    const { nTokens } = this.info, tokens = program.now('generator_tokens', at); // before the memory is looked at
    return Array.from(new Int32Array(program.memory.buffer, tokens, nTokens));
  }

  get counters() {
    const { program } = this.#handle;
    return { allocations: this.#allocations, gpuObjects: this.device === 'cpu' ? 0 : program.webgpu.count };
  }

  async sample(sampling = {}) {
    checkSampling(sampling);
    const { temperature, topK, topP, minP, repeatPenalty, repeatLast, seed } = { ...DEFAULTS, ...sampling };
    return this.#do('generator_sample', temperature, topK, topP, minP, repeatPenalty, repeatLast, BigInt(seed));
  }

  async feed(text, { special = false, onProgress } = {}) {
    const { program } = this.#handle, bytes = encoder.encode(text);
    return this.#withBytes(bytes, async (at) => {
      program.need(await this.#call('generator_feed', at, bytes.length, special ? SPECIAL : 0));
    }, onProgress);
  }

  async feedTokens(tokens, { onProgress } = {}) {
    const { program } = this.#handle, list = Int32Array.from(tokens);
    return this.#withBytes(new Uint8Array(list.buffer), async (at) => {
      program.need(await this.#call('generator_feed_tokens', at, list.length));
    }, onProgress);
  }

  async chat(messages, { onProgress } = {}) {
    const { program } = this.#handle, texts = messages.flatMap(({ role, content }) => [role, content]);
    return program.queue(() => program.withTexts(texts, async (places) => {
      const list = program.alloc(POINTER * places.length);
      try {
        new Uint32Array(program.memory.buffer, list, places.length).set(places);
        program.need(await this.#call('generator_chat', list, messages.length));
      } finally {
        program.free(list);
      }
    }), onProgress);
  }

  async next() {
    const { program } = this.#handle;
    return program.queue(async () => {
      const allocations = program.now('allocations');
      const at = program.need(await this.#call('generator_next'));
      this.#allocations += program.now('allocations') - allocations;
      const [token, isEnd, text, size] = new Int32Array(program.memory.buffer, at, 4);
      return { token, text: decoder.decode(program.bytes.slice(text >>> 0, (text >>> 0) + size)), isEnd: isEnd !== 0 };
    });
  }

  async *generate(count = Infinity) {
    for (let i = 0; i < count; i++) {
      const piece = await this.next();
      yield piece;
      if (piece.isEnd) return;
    }
  }

  async logits() {
    const { program } = this.#handle;
    return program.queue(async () => {
      const at = program.need(await this.#call('generator_logits'));
      const { vocabulary } = this.info; // before the memory is looked at, which may grow by it
      return new Float32Array(program.memory.buffer, at, vocabulary).slice();
    });
  }

  async mark() {
    return this.#do('generator_mark');
  }

  async rewind() {
    return this.#do('generator_rewind');
  }

  async reset() {
    const { program } = this.#handle;
    return program.queue(() => void program.now('generator_reset', this.#handle.at));
  }

  async fork() {
    const { program } = this.#handle;
    return program.queue(async () => {
      await program.threads?.reserve(program);
      return new Generator(program, program.need(await program.call('generator_fork', this.#handle.at)), this.device);
    });
  }

  async save() {
    const { program } = this.#handle;
    return program.queue(async () => {
      const size = program.now('generator_save_size', this.#handle.at), at = program.alloc(size);
      try {
        program.need(await this.#call('generator_save', at, size));
        return program.bytes.slice(at, at + size);
      } finally {
        program.free(at);
      }
    });
  }

  async load(saved) {
    const { program } = this.#handle;
    const bytes = ArrayBuffer.isView(saved) ? new Uint8Array(saved.buffer, saved.byteOffset, saved.byteLength)
      : new Uint8Array(saved);
    return this.#withBytes(bytes, async (at) => {
      program.need(await this.#call('generator_load', at, bytes.length));
    });
  }

  close() {
    this.#handle.close();
  }
}
