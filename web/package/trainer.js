/* A model being trained: its graph with a loss and an optimiser, whose runs are steps, planned in one block. */
import { BerthError } from './program.js';
import { writeSafetensors } from './safetensors.js';

const LOSSES = ['cross_entropy', 'mse'], OPTIMIZERS = ['adamw', 'sgd'];
const NUMBERS = { momentum: 0.9, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0.01, clip: 0 }; // in C's order
const OWN = ['loss', 'output', 'optimizer', 'rate', 'params', 'accumulate', ...Object.keys(NUMBERS)];
const LABELS = 'train.labels', LOSS = 'train.loss', RATE = 'learning_rate';
/* struct web_training of exports.h: six doubles, four pointers, two numbers */
const TRAINING_SIZE = 6 * 8 + 4 * 4 + 2 * 4, TEXTS_AT = 48, PARAMS_AT = 60, COUNT_AT = 64, ACCUMULATE_AT = 68;

const invalid = (message) => new BerthError('INVALID', message);

/** Separates the trainer's options from those of sessions. */
export function splitOptions(given) {
  const own = { loss: 'cross_entropy', output: '', optimizer: 'adamw', rate: 0.001, params: [], accumulate: 1, ...NUMBERS };
  const rest = {};
  for (const [name, value] of Object.entries(given)) {
    if (!OWN.includes(name)) rest[name] = value;
    else if (value !== undefined) own[name] = value;
  }
  checkOwn(own);
  return { own, rest };
}

function checkOwn(own) {
  if (!LOSSES.includes(own.loss)) throw invalid(`there is no loss '${own.loss}'; they are ${LOSSES.join(', ')}`);
  if (!OPTIMIZERS.includes(own.optimizer))
    throw invalid(`there is no optimizer '${own.optimizer}'; they are ${OPTIMIZERS.join(', ')}`);
  for (const name of Object.keys(NUMBERS))
    if (!(own[name] >= 0)) throw invalid(`${name} takes a number from 0 on, not ${own[name]}`);
  if (!Number.isInteger(own.accumulate) || own.accumulate < 1)
    throw invalid(`accumulate takes a whole number from 1 on, not ${own.accumulate}`);
  if (typeof own.rate !== 'function' && !(own.rate >= 0))
    throw invalid(`rate takes a number from 0 on, or a function of the number of steps, not ${own.rate}`);
  if (!Array.isArray(own.params)) throw invalid('params takes a list of names');
}

/** Calls `use` with the options as a C struct, in a block that is freed afterwards. */
export async function withTraining(program, own, use) {
  return program.withTexts([own.loss, own.output, own.optimizer, ...own.params], async (places) => {
    const [names, params] = [places.slice(0, 3), places.slice(3)];
    const block = program.alloc(TRAINING_SIZE + 4 * params.length);
    try {
      const memory = new DataView(program.memory.buffer), list = block + TRAINING_SIZE;
      Object.keys(NUMBERS).forEach((name, i) => memory.setFloat64(block + 8 * i, own[name], true));
      names.forEach((at, i) => memory.setUint32(block + TEXTS_AT + 4 * i, at, true));
      params.forEach((at, i) => memory.setUint32(list + 4 * i, at, true));
      memory.setUint32(block + PARAMS_AT, list, true);
      memory.setUint32(block + COUNT_AT, params.length, true);
      memory.setUint32(block + ACCUMULATE_AT, own.accumulate, true);
      return await use(block);
    } finally {
      program.free(block);
    }
  });
}

export class Trainer {
  #model;
  #session;
  #own;
  #params; // names of the model's weights
  #steps = 0;
  #runs = 0; // of the current step

  /** `model`: the training graph, which is closed with it; `params`: names of the original model's weights. */
  constructor(model, session, own, params) {
    this.#model = model;
    this.#session = session;
    this.#own = own;
    this.#params = new Set(params);
    this.device = session.device;
    this.plan = session.plan;
    this.inputs = session.inputs.filter(({ name }) => name !== LABELS && name !== RATE);
    this.labels = session.inputs.find(({ name }) => name === LABELS);
  }

  get steps() {
    return this.#steps;
  }

  get counters() {
    return this.#session.counters;
  }

  get timings() {
    return this.#session.timings;
  }

  async step(inputs, labels) {
    const { rate, accumulate } = this.#own;
    const now = typeof rate === 'function' ? rate(this.#steps) : rate;
    const given = { ...inputs, [LABELS]: labels, [RATE]: Float32Array.of(now) };
    const { [LOSS]: loss } = await this.#session.run(given);
    this.#runs = (this.#runs + 1) % accumulate;
    if (this.#runs === 0) this.#steps++;
    return loss.data[0];
  }

  async weights() {
    const states = await this.#session.states();
    return Object.fromEntries(Object.entries(states).filter(([name]) => this.#params.has(name)));
  }

  async save() {
    return writeSafetensors(await this.weights());
  }

  async saveCheckpoint() {
    return this.#session.saveStates();
  }

  async loadCheckpoint(saved) {
    await this.#session.loadStates(saved);
    const { 'train.step': step, 'train.run': run } = await this.#session.states();
    this.#steps = Number(step?.data[0] ?? 0);
    this.#runs = Number(run?.data[0] ?? 0) % this.#own.accumulate;
  }

  close() {
    this.#session.close();
    this.#model.close();
  }
}
