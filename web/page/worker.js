/**
 * The worker that berth runs in: requests `{ id, kind, ... }` come in, and `{ id, progress }`, then `{ id, value }` or
 * `{ id, error }` go out. One request after the other; only `stop` is heard at once. README.md has the kinds.
 */
import { load } from './package/berth.js';
import { isText, seededWeights } from './worker/weights.js';
import { runMany } from './worker/runs.js';

const models = new Map();
const sessions = new Map();
const stopped = new Set();
let berth = null;
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

async function bytesOf(source) {
  if (source.file) return new Uint8Array(await source.file.arrayBuffer());
  const response = await fetch(source.url);
  if (!response.ok) throw new Error(`${source.url} could not be fetched: ${response.status} ${response.statusText}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** `seeded`: whether its weights are made up, since a graph in the text form came without any. */
async function openModel(source, onProgress) {
  if (source.builtIn) return { model: await berth.digits(), seeded: false };
  onProgress({ stage: 'reading the file', done: 0, total: 0 });
  const bytes = await bytesOf(source);
  const given = source.weights ?? null;
  const made = !given && isText(bytes) ? seededWeights(new TextDecoder().decode(bytes)) : null;
  const weights = given ?? made ?? undefined;
  return { model: await berth.model(bytes, { name: source.name, weights, onProgress }), seeded: made !== null };
}

const kinds = {
  async load({ threads }, onProgress) {
    berth = await load({ threads, onProgress });
    return { version: berth.version, threads: berth.threads };
  },

  devices: () => berth.devices(),

  async open({ source }, onProgress) {
    const { model, seeded } = await openModel(source, onProgress);
    const { name, inputs, outputs, dims, nNodes } = model;
    return { handle: put(models, model), name, inputs, outputs, dims, nNodes, seeded };
  },

  async plan({ model, options }, onProgress) {
    return planOf(await get(models, model, 'model').plan({ ...options, onProgress }));
  },

  async picture({ model, options }) {
    return (await get(models, model, 'model').plan(options)).svg();
  },

  async session({ model, options }, onProgress) {
    const session = await get(models, model, 'model').session({ ...options, onProgress });
    const { device, inputs, outputs, plan } = session;
    return { handle: put(sessions, session), device, inputs, outputs, arena: plan.report.arena_size };
  },

  async run({ id, session, inputs, repeats }, onProgress) {
    const isStopped = () => stopped.has(id);
    const value = await runMany(get(sessions, session, 'session'), inputs, repeats, onProgress, isStopped);
    return { ...value, memory: berth.memory() };
  },

  free({ model, session }) {
    if (session) get(sessions, session, 'session').close();
    if (model) get(models, model, 'model').close();
    sessions.delete(session);
    models.delete(model);
    return null;
  },
};

function buffersOf(value) {
  return (value?.outputs ?? []).filter((o) => o.data).map((o) => o.data.buffer);
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
  else last = last.then(() => answer(data));
});
