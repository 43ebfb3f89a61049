/**
 * berth's worker: requests `{ id, kind, ... }` come in, and `{ id, progress }`, then `{ id, value }` or `{ id, error }`
 * go out. Requests are processed one after the other; only `stop` takes effect at once. README.md lists the kinds.
 */
import { load } from './package/berth.js';
import { inputsOf, pause, runMany } from './worker/runs.js';
import { arrayOf, writer } from './common/types.js';
/* Imports of the following modules, so that all are requested at once: a file found by reading another would wait for
 * it. */
import './common/random.js';
import './worker/summary.js';
import './package/external.js';
import './package/generator.js';
import './package/gguf.js';
import './package/handle.js';
import './package/host.js';
import './package/model.js';
import './package/parts.js';
import './package/program.js';
import './package/source.js';
import './package/safetensors.js';
import './package/tensor.js';
import './package/threads.js';
import './package/trainer.js';
import './package/wasi.js';
import './package/webgpu.js';

/* { source, model, fixed (a key), spent (models that a session may still be of) }; of a GGUF file also gguf, byKind
 * (models by the type of their cache) and talk (its generator) */
const models = new Map();
const sessions = new Map();
const stopped = new Set();
let berth = null;
let give = null; // provides the module, which the page fetches
const module = new Promise((resolve) => {
  give = resolve;
});
const loading = load({ module }); // before the first request
loading.catch(() => {});
let nextHandle = 1;

function put(map, thing) {
  map.set(nextHandle, thing);
  return nextHandle++;
}

function get(map, handle, what) {
  if (!map.has(handle)) throw new Error(`there is no ${what} ${handle} any more`);
  return map.get(handle);
}

const planOf = ({ report, values, steps }) => ({ report, values, steps });

async function blobOf({ file, url }) {
  if (file) return file;
  const response = await fetch(url).catch(() => {
    throw new Error(`${url} could not be read: there is no such server, or it does not let other pages read its files (CORS)`);
  });
  if (!response.ok) throw new Error(`${url} could not be fetched: ${response.status} ${response.statusText}`);
  return response.blob();
}

const bytesOf = async (source) => new Uint8Array(await (await blobOf(source)).arrayBuffer());

async function isGguf({ file, url }) {
  if (!file) return /\.gguf$/.test(new URL(url ?? '', location.href).pathname);
  return (await file.slice(0, 4).text()) === 'GGUF';
}

/** Reads only the header of a GGUF file, which may be larger than any memory. */
async function openGguf(source, onProgress) {
  const isElsewhere = source.url && new URL(source.url).origin !== location.origin;
  const parts = Object.values(source.files ?? {});
  const gguf = await berth.gguf(isElsewhere ? source.url : await blobOf(source), { name: source.name, parts, onProgress });
  try {
    const model = await gguf.model();
    return { model, seeded: false, gguf, byKind: { [gguf.defaultKv]: model } };
  } catch (error) {
    gguf.close();
    throw error;
  }
}

/** `seeded`: its weights are generated, because a graph in the text form has none. */
async function openModel(source, onProgress) {
  if (source.builtIn) return { model: await berth.digits(), seeded: false };
  if (await isGguf(source)) return openGguf(source, onProgress);
  onProgress({ stage: 'reading the file', done: 0, total: 0 });
  const bytes = await bytesOf(source);
  const { isText, seededWeights } = await import('./worker/weights.js');
  const given = source.weights ?? null;
  const made = !given && isText(bytes) ? seededWeights(new TextDecoder().decode(bytes)) : null;
  const weights = given ?? made ?? undefined;
  const options = { name: source.name, weights, files: source.files, onProgress };
  return { model: await berth.model(bytes, options), seeded: made !== null };
}

/**
 * A model with inputs made constants, as given by name in `fixed`: type, shape, numbers. That cannot be undone: for
 * other numbers the model is opened again.
 */
async function fixedModel(entry, fixed = {}, onProgress) {
  const key = JSON.stringify(fixed);
  if (entry.fixed === key) return entry.model;
  const { model } = await openModel(entry.source, onProgress);
  try {
    for (const [name, { type, shape, numbers }] of Object.entries(fixed)) {
      await model.fix(name, { type, shape, data: arrayOf(type).from(numbers, writer(type)) });
    }
  } catch (error) {
    model.close();
    throw error;
  }
  entry.spent.push(entry.model);
  Object.assign(entry, { model, fixed: key });
  return model;
}

/**
 * The subject of a request: an entry's model, with its inputs fixed, or for a GGUF file the model with that cache; and
 * its options.
 */
async function modelFor(entry, fixed, { kv = entry.gguf?.defaultKv, ...options }, onProgress) {
  if (!entry.gguf) {
    const model = await fixedModel(entry, fixed, onProgress);
    return [model, optionsFor(model, options, onProgress)];
  }
  const model = (entry.byKind[kv] ??= await entry.gguf.model({ kv }));
  return [model, optionsFor(model, { ...options, keepInputs: true }, onProgress)]; // as generators plan
}

/** The options for a model: a dimension that only a fixed input had is no longer open. */
function optionsFor(model, { dims, ...options }, onProgress) {
  const open = Object.entries(dims).filter(([name]) => model.dims.includes(name));
  return { ...options, dims: Object.fromEntries(open), onProgress };
}

function closeSpent({ spent }) {
  for (const model of spent.splice(0)) model.close();
}

const kinds = {
  async load() {
    berth = await loading;
    return { version: berth.version, threads: berth.threads };
  },

  devices: () => berth.devices(),

  async open({ source }, onProgress) {
    const { model, seeded, gguf, byKind } = await openModel(source, onProgress);
    const { name, inputs, outputs, dims, nNodes, toFix } = model;
    const handle = put(models, { source, model, fixed: '{}', spent: [], gguf, byKind, talk: null });
    const language = gguf ? { ...gguf } : null;
    return { handle, name, inputs, outputs, dims, nNodes, toFix, seeded, language };
  },

  async guess({ model: handle, dims }) {
    const { gguf, model } = get(models, handle, 'model');
    return gguf ? dims : (await model.guess(dims)).dims;
  },

  async report({ model: handle, fixed, options, form }, onProgress) {
    const [model, wanted] = await modelFor(get(models, handle, 'model'), fixed, options, onProgress);
    return model.report(form, wanted);
  },

  async graph({ model: handle, dims }) {
    const { model } = get(models, handle, 'model');
    const graph = await model.nodes({ dims: Object.fromEntries(Object.entries(dims).filter(([name]) => model.dims.includes(name))) });
    const { layoutGraph } = await import('./common/graph_layout.js');
    return { ...graph, layout: layoutGraph({ ...graph, inputs: model.inputs.map(({ name }) => name) }) };
  },

  trace({ session: handle, inputs, elements }) {
    const session = get(sessions, handle, 'session');
    return session.trace(inputsOf(session, inputs), { elements });
  },

  async plan({ model: handle, fixed, options }, onProgress) {
    const entry = get(models, handle, 'model');
    const [model, wanted] = await modelFor(entry, fixed, options, onProgress);
    const plan = planOf(await model.plan(wanted));
    return { ...plan, inputs: entry.gguf ? model.inputs : (await model.guess(wanted.dims)).inputs };
  },

  async session({ model: handle, fixed, options }, onProgress) {
    const entry = get(models, handle, 'model');
    const [model, wanted] = await modelFor(entry, fixed, options, onProgress);
    closeSpent(entry);
    const session = await model.session(wanted);
    const { device, inputs, outputs, plan } = session;
    return { handle: put(sessions, session), device, inputs, outputs, arena: plan.report.arena_size };
  },

  size: ({ model, options }, onProgress) => get(models, model, 'model').gguf.plan({ ...options, onProgress }),

  fit: ({ model, bytes, options }, onProgress) => get(models, model, 'model').gguf.fit(bytes, { ...options, onProgress }),

  async talk({ id, model, options, ...request }, onProgress) {
    const { converse, generatorOf } = await import('./worker/talks.js');
    const talk = await generatorOf(get(models, model, 'model'), options, onProgress);
    const value = await converse(talk, request, onProgress, () => stopped.has(id));
    return { ...value, memory: berth.memory() };
  },

  async learnPlan({ model, classes, device }) {
    const { planLearning } = await import('./worker/learns.js');
    return planLearning(berth, get(models, model, 'model').model, classes, device);
  },

  async learn({ id, model, ...request }, onProgress) {
    const { learn } = await import('./worker/learns.js');
    return learn(berth, get(models, model, 'model').model, request, onProgress, () => stopped.has(id), pause);
  },

  async run({ id, session, inputs, repeats }, onProgress) {
    const isStopped = () => stopped.has(id);
    const value = await runMany(get(sessions, session, 'session'), inputs, repeats, onProgress, isStopped);
    return { ...value, memory: berth.memory() };
  },

  free({ model, session }) {
    if (session) get(sessions, session, 'session').close();
    if (model) {
      const entry = get(models, model, 'model');
      closeSpent(entry);
      entry.model.close();
      for (const other of Object.values(entry.byKind ?? {})) other.close();
      entry.talk?.generator.close();
      entry.gguf?.close();
    }
    sessions.delete(session);
    models.delete(model);
    return null;
  },
};

function buffersOf(value) {
  return (value?.outputs ?? value?.tensors ?? []).filter((o) => o.data).map((o) => o.data.buffer);
}

async function answer(request) {
  const { id, kind } = request;
  try {
    const value = await kinds[kind](request, (progress) => postMessage({ id, progress }));
    postMessage({ id, value }, buffersOf(value));
  } catch (error) {
    postMessage({ id, error: { message: error?.message ?? String(error), status: error?.status ?? '' } });
  }
  stopped.delete(id);
}

let last = Promise.resolve();
addEventListener('message', ({ data }) => {
  if (data.kind === 'stop') stopped.add(data.run);
  else if (data.kind === 'module') give(data.module);
  else last = last.then(() => answer(data));
});
