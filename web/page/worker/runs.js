/** Runs a session once or many times, and returns times and results. */
import { arrayOf, countOf, writer } from '../common/types.js';
import { randomElements } from '../common/random.js';
import { summarise } from './summary.js';

const SLICE = 50; // milliseconds of running between checks for messages

function dataOf(input, spec) {
  const count = countOf(input.shape);
  if (spec.data) return spec.data;
  if (spec.fill === 'random') return randomElements(input.type, count, input.name, spec.seed, { below: spec.below });
  const data = new (arrayOf(input.type))(count);
  if (spec.fill === 'constant') data.fill(writer(input.type)(spec.value));
  return data;
}

/** Elements for every input of a session, as specified by name in `specs`. */
export const inputsOf = (session, specs) =>
  Object.fromEntries(session.inputs.map((input) => [input.name, dataOf(input, specs[input.name] ?? { fill: 'zeros' })]));

/** Lets messages be processed. */
export const pause = () =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });

export async function runMany(session, specs, repeats, onProgress, isStopped) {
  const inputs = inputsOf(session, specs);
  const allocated = session.counters.allocations;
  const timings = { write: [], run: [], read: [], total: [] };
  let outputs = null;
  let looked = performance.now();
  do {
    outputs = await session.run(inputs);
    for (const part of Object.keys(timings)) timings[part].push(session.timings[part]);
    if (performance.now() - looked < SLICE) continue;
    onProgress({ stage: 'running', done: timings.run.length, total: repeats });
    await pause();
    looked = performance.now();
  } while (timings.run.length < repeats && !isStopped());

  return {
    outputs: Object.entries(outputs).map(([name, { type, shape, data }]) => {
      // The library's result may be a view of its memory, which cannot be transferred.
      const own = data.byteLength === data.buffer.byteLength && !isShared(data.buffer) ? data : data.slice();
      return { name, type, shape: [...shape], data: own, summary: summarise(type, own) };
    }),
    timings,
    counters: { allocations: session.counters.allocations - allocated, gpuObjects: session.counters.gpuObjects },
    stopped: timings.run.length < repeats,
  };
}

const isShared = (buffer) => typeof SharedArrayBuffer !== 'undefined' && buffer instanceof SharedArrayBuffer;
