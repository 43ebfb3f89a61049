/* What tests/web/webgpu.mjs has done in a page, or in a worker of it. Everything that is given back is plain. */
import { load } from '/package/berth.js';

const PIXELS = Float32Array.from({ length: 64 }, (_, i) => 0.5 + 0.5 * Math.sin(i * i));
const NPY_TYPES = {
  f4: ['f32', Float32Array], f8: ['f64', Float64Array], f2: ['f16', Uint16Array], b1: ['bool', Uint8Array],
  i1: ['i8', Int8Array], i2: ['i16', Int16Array], i4: ['i32', Int32Array], i8: ['i64', BigInt64Array],
  u1: ['u8', Uint8Array], u2: ['u16', Uint16Array], u4: ['u32', Uint32Array], u8: ['u64', BigUint64Array],
};

function readNpy(buffer) {
  const end = 10 + new DataView(buffer).getUint16(8, true);
  const header = new TextDecoder().decode(new Uint8Array(buffer, 10, end - 10));
  const [type, View] = NPY_TYPES[/'descr': '[<|](\w+)'/.exec(header)[1]];
  const shape = /'shape': \(([^)]*)\)/.exec(header)[1].split(',').filter((part) => part.trim() !== '').map(Number);
  return { type, shape, data: new View(buffer.slice(end)) };
}

async function readCase(folder) {
  const list = await (await fetch(`${folder}/inputs.tsv`)).text();
  const entries = list.trimEnd().split('\n').map(async (line) => {
    const [file, name] = line.split('\t');
    return [name, readNpy(await (await fetch(`${folder}/${file}`)).arrayBuffer())];
  });
  return Object.fromEntries(await Promise.all(entries));
}

function dimsOf(model, given) {
  const dims = {};
  for (const { name, shape } of model.inputs)
    shape.forEach((dim, axis) => {
      if (typeof dim === 'string') dims[dim] = given[name].shape[axis];
    });
  return dims;
}

const plain = (outputs) => Object.fromEntries(Object.entries(outputs).map(([name, { data }]) => [name, [...data].map(Number)]));

/* The largest difference, in parts of the larger of the number and of a thousandth of the largest. */
function difference(got, wanted) {
  let worst = 0;
  for (const [name, numbers] of Object.entries(wanted)) {
    if (got[name].length !== numbers.length) return Infinity;
    const floor = numbers.reduce((most, number) => Math.max(most, Math.abs(number)), 0) / 1000;
    numbers.forEach((number, i) => {
      const off = Math.abs(got[name][i] - number);
      if (off !== 0) worst = off > 0 ? Math.max(worst, off / Math.max(Math.abs(number), floor)) : Infinity;
    });
  }
  return worst;
}

async function median(session, given, runs) {
  const times = [];
  for (let i = 0; i < runs; i++) {
    await session.run(given);
    times.push(session.timings.total);
  }
  return times.sort((a, b) => a - b)[runs >> 1];
}

/* On both devices: how far apart they are, and how long they take. */
async function both(model, given, dims, runs) {
  const found = {}, ms = {};
  for (const device of ['cpu', 'webgpu']) {
    const start = performance.now(), session = await model.session({ device, dims });
    found[device] = plain(await session.run(given));
    ms[device] = { first: performance.now() - start, run: await median(session, given, runs) };
    session.close();
  }
  return { off: difference(found.webgpu, found.cpu), ms };
}

export async function devices() {
  const berth = await load();
  return berth.devices();
}

export async function digits({ threads, runs = 5 } = {}) {
  const start = performance.now(), berth = await load({ threads }), loaded = performance.now() - start;
  const result = await both(await berth.digits(), { image: PIXELS }, { batch: 1 }, runs);
  return { ...result, loaded, threads: berth.threads };
}

export async function model(file, folder, runs = 3) {
  const berth = await load(), network = await berth.model(file), given = await readCase(folder);
  return both(network, given, dimsOf(network, given), runs);
}

/* A session on the GPU that is kept, for runs(). */
let kept = null;

export async function open() {
  const berth = await load();
  kept = { berth, session: await (await berth.digits()).session({ device: 'webgpu', dims: { batch: 1 } }) };
  return kept.session.counters;
}

export async function runs(count) {
  const seen = new Set();
  for (let i = 0; i < count; i++) {
    await kept.session.run({ image: PIXELS });
    const { allocations, gpuObjects } = kept.session.counters;
    seen.add(`${allocations} allocations, ${gpuObjects} objects, ${kept.berth.memory().total} bytes`);
  }
  return [...seen];
}

/* What a session or a run says that fails; null: neither does. */
export async function failure() {
  try {
    if (kept === null) await open();
    await runs(1);
    return null;
  } catch ({ name, status, message }) {
    return { name, status, message };
  }
}

export async function closeAll() {
  kept.session.close();
  await kept.berth.devices(); // behind it in the queue
  return kept.session.counters.gpuObjects;
}

/* ---- Browsers that have less, or other limits ---- */

export const withoutGPU = () => {
  delete Navigator.prototype.gpu;
  return devices();
};

export const withoutWaiting = () => {
  delete WebAssembly.Suspending;
  return devices();
};

export const withoutAdapter = () => {
  GPU.prototype.requestAdapter = async () => null;
  return devices();
};

export const digitsInWindows = (bytes) => {
  Object.defineProperty(GPUSupportedLimits.prototype, 'maxStorageBufferBindingSize', { get: () => bytes });
  return digits();
};

export const withBadShaders = () => {
  const make = GPUDevice.prototype.createShaderModule;
  GPUDevice.prototype.createShaderModule = function () {
    return make.call(this, { code: 'fn main( { nonsense' });
  };
  return failure();
};

export const withoutMemory = () => {
  const pop = GPUDevice.prototype.popErrorScope;
  GPUDevice.prototype.popErrorScope = async function () {
    return (await pop.call(this)) ?? new GPUOutOfMemoryError('not a byte is left');
  };
  return failure();
};

/* The command buffer is wrong, which nobody waits for at that moment: some of it may be told with the next runs. */
export const withBadCopies = async () => {
  await open();
  const copy = GPUCommandEncoder.prototype.copyBufferToBuffer;
  GPUCommandEncoder.prototype.copyBufferToBuffer = function (src, srcOffset, dst, dstOffset, size) {
    return copy.call(this, src, srcOffset, src, dstOffset, size);
  };
  const said = await failure();
  GPUCommandEncoder.prototype.copyBufferToBuffer = copy;
  return [said, await failure(), await failure()];
};

export const closedMeanwhile = async () => {
  await open();
  const map = GPUBuffer.prototype.mapAsync;
  GPUBuffer.prototype.mapAsync = function (...args) {
    kept.berth.close();
    return map.apply(this, args);
  };
  return failure();
};

if (typeof WorkerGlobalScope !== 'undefined') {
  const here = { digits, model };
  addEventListener('message', async ({ data: [name, ...args] }) => {
    try {
      postMessage({ result: await here[name](...args) });
    } catch (error) {
      postMessage({ error: error.stack });
    }
  });
}
