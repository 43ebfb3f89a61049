/* Models, plans and sessions. */
import { Handle } from './handle.js';
import { BerthError, listener } from './program.js';
import { checkNames, countOf, isPlain, toWrite, view } from './tensor.js';
import { Trainer, splitOptions, withTraining } from './trainer.js';

/* berth_plan_flag */
const INPUTS_DIE = 1 << 3, F16_WEIGHTS = 1 << 13;
/* berth_report_kind */
const REPORTS = { text: 0, csv: 1, svg: 2, html: 3 };
const DIM_SIZE = 16, EXTENT_AT = 8; // a berth_dim: a pointer, and 64 bits

function checkOptions(dims, options) {
  const known = ['device', 'dims', 'budget', 'effort', 'keepInputs', 'f16Weights', 'onProgress'];
  for (const name of Object.keys(options))
    if (!known.includes(name)) throw new BerthError('INVALID', `there is no option '${name}'; they are ${known.join(', ')}`);
  for (const [name, extent] of Object.entries(options.dims ?? {})) {
    if (!dims.includes(name)) {
      throw new BerthError('INVALID', `the model has no dimension '${name}'; ` +
        (dims.length !== 0 ? `it leaves open ${dims.join(', ')}` : 'it leaves none open'));
    }
    if (!Number.isSafeInteger(extent) || extent < 0)
      throw new BerthError('INVALID', `dimension '${name}' takes a whole number, not ${extent}`);
  }
  for (const name of ['budget', 'effort'])
    if (options[name] !== undefined && (!Number.isSafeInteger(options[name]) || options[name] < 0))
      throw new BerthError('INVALID', `${name} takes a whole number, not ${options[name]}`);
}

/** Calls `use` with dimensions as C structs and with other texts: the list, its length, and the texts' addresses. */
async function withDims(program, dims, texts, use) {
  const names = Object.keys(dims);
  return program.withTexts([...names, ...texts], async (places) => {
    const list = program.alloc(DIM_SIZE * names.length);
    try {
      const memory = new DataView(program.memory.buffer);
      names.forEach((name, i) => {
        memory.setUint32(list + i * DIM_SIZE, places[i], true);
        memory.setBigInt64(list + i * DIM_SIZE + EXTENT_AT, BigInt(dims[name]), true);
      });
      return await use(list, names.length, ...places.slice(names.length));
    } finally {
      program.free(list);
    }
  });
}

/** Calls `name` (plan or session) with a graph and options. Inside a job. */
async function make(program, name, graph, options) {
  const { device = 'cpu', dims = {}, budget = 0, effort = 0, keepInputs = false, f16Weights = false } = options;
  const flags = (keepInputs ? 0 : INPUTS_DIE) | (f16Weights ? F16_WEIGHTS : 0);
  return withDims(program, dims, [device], async (list, count, deviceAt) => program.need(
    await program.call(name, graph, deviceAt, flags, BigInt(budget), BigInt(effort), list, count)));
}

const reportOf = (program, plan, kind) => program.text(program.need(program.now('report', plan, REPORTS[kind])));

/** Describes a plan as data; the plan itself may be freed afterwards. */
function describePlan(program, plan, { device = 'cpu', dims = {} }) {
  const { report, values, steps } = program.json(program.now('describe_plan', plan));
  const picture = reportOf(program, plan, 'svg');
  return { report: { device, dims: { ...dims }, ...report }, values, steps, svg: () => picture };
}

export class Model {
  #handle;

  constructor(program, graph, about, name) {
    this.#handle = new Handle(program, 'model', graph, 'graph_close');
    Object.assign(this, about, { name: name ?? about.name });
  }

  async fix(name, given) {
    const { program } = this.#handle, { type, shape } = given ?? {};
    if (!Array.isArray(shape) || !shape.every(Number.isSafeInteger))
      throw new BerthError('INVALID', `input '${name}' is fixed by a tensor: { type, shape, data }`);
    const elements = toWrite({ name, type, shape }, given);
    return program.queue(() => program.withTexts([name, type], ([nameAt, typeAt]) => {
      const size = elements.byteLength, list = program.alloc(8 * shape.length + size), at = list + 8 * shape.length;
      try {
        view('i64', program.memory.buffer, list, shape.length).set(shape.map(BigInt));
        program.bytes.set(new Uint8Array(elements.buffer, elements.byteOffset, size), at);
        program.need(program.now('fix', this.#handle.at, nameAt, typeAt, shape.length, list, at, size));
      } finally {
        program.free(list);
      }
      const { name: _, ...about } = program.json(program.now('describe', this.#handle.at));
      Object.assign(this, about);
    }));
  }

  async guess(dims = {}) {
    const { program } = this.#handle;
    checkOptions(this.dims, { dims });
    const all = Object.fromEntries(this.dims.map((name) => [name, dims[name] ?? 1]));
    return program.queue(() => withDims(program, all, [], (list, count) =>
      program.json(program.now('guess', this.#handle.at, list, count))));
  }

  async plan(options = {}) {
    return this.#planned(options, (program, plan) => describePlan(program, plan, options));
  }

  async report(kind, options = {}) {
    if (!Object.hasOwn(REPORTS, kind))
      throw new BerthError('INVALID', `there is no report '${kind}'; they are ${Object.keys(REPORTS).join(', ')}`);
    return this.#planned(options, (program, plan) => reportOf(program, plan, kind));
  }

  /** Calls `look` with a plan that is freed afterwards. */
  async #planned(options, look) {
    const { program } = this.#handle;
    checkOptions(this.dims, options);
    return program.queue(async () => {
      listener(options.onProgress)({ stage: 'planning', done: 0, total: 0 });
      const plan = await make(program, 'plan', this.#handle.at, options);
      try {
        return look(program, plan);
      } finally {
        program.now('plan_close', plan);
      }
    }, options.onProgress);
  }

  async nodes({ dims = {} } = {}) {
    const { program } = this.#handle;
    checkOptions(this.dims, { dims });
    return program.queue(() => withDims(program, dims, [], (list, count) =>
      program.json(program.now('describe_nodes', this.#handle.at, list, count))));
  }

  async weights() {
    const { program } = this.#handle;
    return program.queue(() => Object.fromEntries(program.json(program.now('describe_weights', this.#handle.at))
      .filter(({ type, at }) => at !== 0 && isPlain(type))
      .map(({ name, type, shape, at }) =>
        [name, { type, shape, data: view(type, program.memory.buffer, at, countOf(shape)).slice() }])));
  }

  /* The training graph, as a separate model with bound dimensions. */
  async #learning(own, { dims = {} }) {
    const { program } = this.#handle;
    checkOptions(this.dims, { dims });
    return program.queue(() => withTraining(program, own, (how) => withDims(program, dims, [], (list, count) => {
      const graph = program.need(program.now('train', this.#handle.at, how, list, count));
      return new Model(program, graph, program.json(program.now('describe', graph)), this.name);
    })));
  }

  async trainerPlan(options = {}) {
    const { own, rest: { dims, ...rest } } = splitOptions(options);
    const model = await this.#learning(own, { dims });
    try {
      return await model.plan(rest);
    } finally {
      model.close();
    }
  }

  async trainer(options = {}) {
    const { own, rest: { dims, ...rest } } = splitOptions(options);
    const { program } = this.#handle;
    const names = program.json(program.now('describe_weights', this.#handle.at)).map(({ name }) => name);
    const model = await this.#learning(own, { dims });
    try {
      return new Trainer(model, await model.session(rest), own, names);
    } catch (error) {
      model.close();
      throw error;
    }
  }

  async session(options = {}) {
    const { program } = this.#handle;
    checkOptions(this.dims, options);
    return program.queue(async () => {
      await program.threads?.reserve(program);
      const session = await make(program, 'session', this.#handle.at, options);
      const plan = program.now('session_plan', session);
      const { inputs, outputs } = program.json(program.now('describe_bound', plan));
      return new Session(program, session, describePlan(program, plan, options), inputs, outputs);
    }, options.onProgress);
  }

  close() {
    this.#handle.close();
  }
}

class Session {
  #handle;
  #allocations = 0;

  constructor(program, session, plan, inputs, outputs) {
    this.#handle = new Handle(program, 'session', session, 'session_close');
    this.device = plan.report.device;
    this.plan = plan;
    this.inputs = inputs;
    this.outputs = outputs;
    this.timings = { write: 0, run: 0, read: 0, total: 0 };
  }

  get counters() {
    const { program } = this.#handle;
    return {
      allocations: this.#allocations,
      gpuObjects: this.device === 'cpu' ? 0 : program.webgpu.count,
    };
  }

  async run(given) {
    const elements = this.#elements(given);
    return this.#handle.program.queue(() => this.#run(elements));
  }

  async trace(given, { elements: most = 65536 } = {}) {
    if (!Number.isInteger(most) || most < 0 || most > 0xffff_ffff)
      throw new BerthError('INVALID', `elements takes a whole number, not ${most}`);
    const elements = this.#elements(given);
    return this.#handle.program.queue(() => this.#trace(elements, most));
  }

  #elements(given) {
    checkNames(this.inputs, given);
    return this.inputs.map((input) => toWrite(input, given[input.name]));
  }

  async #write(elements) {
    const { program, at } = this.#handle;
    elements.forEach((list, i) => {
      const { type } = this.inputs[i];
      view(type, program.memory.buffer, program.now('input', at, i), list.length).set(list);
    });
    program.need(await program.call('write', at));
  }

  async #trace(elements, most) {
    const { program, at } = this.#handle;
    await this.#write(elements);
    try {
      const { steps, tensors } = program.json(await program.call('trace', at, most));
      return {
        steps,
        tensors: tensors.map(({ at: where, count, ...tensor }) => ({
          ...tensor,
          name: this.plan.steps[tensor.step].out[tensor.out],
          data: view(tensor.type, program.memory.buffer, where, count).slice(),
        })),
      };
    } finally {
      program.now('trace_end');
    }
  }

  async #run(elements) {
    const { program, at } = this.#handle, start = performance.now();
    const allocations = program.now('allocations');
    await this.#write(elements);
    const written = performance.now();
    program.need(await program.call('run', at));
    const ran = performance.now();
    program.need(await program.call('read', at));
    const results = Object.fromEntries(this.outputs.map((output, i) => [output.name, this.#output(at, output.type, i)]));
    const end = performance.now();
    this.#allocations += program.now('allocations') - allocations;
    this.timings = { write: written - start, run: ran - written, read: end - ran, total: end - start };
    return results;
  }

  /** States, which are kept from run to run, by name. */
  async states() {
    const { program } = this.#handle;
    return program.queue(async () => {
      const list = program.json(program.now('describe_states', this.#handle.at)), states = {};
      for (const { name, type, shape, size } of list)
        if (isPlain(type)) states[name] = { type, shape, data: await this.#state(name, type, shape, size) };
      return states;
    });
  }

  async #state(name, type, shape, size) {
    const { program, at } = this.#handle;
    return program.withTexts([name], ([nameAt]) => this.#withBlock(size, async (block) => {
      program.need(await program.call('state_read', at, nameAt, block, size));
      return view(type, program.memory.buffer, block, countOf(shape)).slice();
    }));
  }

  async #withBlock(size, use) {
    const { program } = this.#handle, block = program.alloc(size);
    try {
      return await use(block);
    } finally {
      program.free(block);
    }
  }

  async saveStates() {
    const { program } = this.#handle;
    return program.queue(() => {
      const size = program.now('state_size', this.#handle.at);
      return this.#withBlock(size, async (block) => {
        program.need(await program.call('state_save', this.#handle.at, block, size));
        return program.bytes.slice(block, block + size);
      });
    });
  }

  async loadStates(saved) {
    const { program } = this.#handle;
    const bytes = ArrayBuffer.isView(saved) ? new Uint8Array(saved.buffer, saved.byteOffset, saved.byteLength)
      : new Uint8Array(saved);
    return program.queue(() => this.#withBlock(bytes.length, async (block) => {
      program.bytes.set(bytes, block);
      program.need(await program.call('state_restore', this.#handle.at, block, bytes.length));
    }));
  }

  #output(session, type, i) {
    const { program } = this.#handle, { buffer } = program.memory;
    const at = program.need(program.now('output_shape', session, i));
    const [rank, ...extents] = Array.from(new BigInt64Array(buffer, at, 9), Number);
    const shape = extents.slice(0, rank);
    return { type, shape, data: view(type, buffer, program.now('output', session, i), countOf(shape)).slice() };
  }

  close() {
    this.#handle.close();
  }
}
