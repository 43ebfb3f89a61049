'use strict';
// Runs models in ONNX Runtime and in berth on the same fresh pseudo-random inputs and compares what they give.
//   node compare.js BERTH ORT_FOLDER [--seed N] [--dim NAME=N]... [--only PART] MODEL.onnx|FOLDER...
// A folder stands for every .onnx file below it. Where inputs.tsv lies beside a model, or in a folder below it, the
// arrays that it names give the shapes where --dim does not, and those of integers are taken as they are: they are ids,
// switches and the like.
const {spawnSync} = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const {listCases, nameOf, readList} = require('./cases.js');
const npy = require('./npy.js');

// Names in a file that say that it draws random numbers.
const RANDOM = ['RandomNormal', 'RandomUniform', 'Bernoulli', 'Multinomial', 'training_dropout'];

function parse(argv) {
  const options = {seed: 1, dims: {}, only: '', models: [], berth: argv[0], ort: argv[1]};
  for (let i = 2; i < argv.length; i++) {
    if (argv[i] === '--seed') options.seed = Number(argv[++i]);
    else if (argv[i] === '--only') options.only = argv[++i];
    else if (argv[i] === '--dim') {
      const [, name, extent] = /^(.*)=(\d+)$/.exec(argv[++i]);
      options.dims[name] = Number(extent);
    } else options.models.push(argv[i]);
  }
  return options;
}

// ---- Inputs ----

function randomSource(seed, text) {
  let state = seed >>> 0;
  for (const c of text) state = (Math.imul(state ^ c.charCodeAt(0), 0x01000193) + 0x9e3779b9) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function numberToHalf(x) { // of [-1, 1), to the nearest multiple of 2^-10
  const n = Math.round(Math.abs(x) * 1024);
  if (n === 0) return 0;
  const top = Math.floor(Math.log2(n));
  return (x < 0 ? 0x8000 : 0) | ((top + 5) << 10) | ((n << (10 - top)) & 1023);
}

// Integers are 1 or 2: good as ids, axes and extents more often than not, and safe to divide by.
function fill(type, dims, random) {
  const count = dims.reduce((a, b) => a * b, 1);
  const make = {
    float32: () => random() * 2 - 1, float64: () => random() * 2 - 1, float16: () => numberToHalf(random() * 2 - 1),
    bool: () => Number(random() < 0.5), int64: () => BigInt(1 + Math.floor(random() * 2)),
    uint64: () => BigInt(1 + Math.floor(random() * 2)),
  }[type] || (() => 1 + Math.floor(random() * 2));
  return {type, dims, bytes: npy.bytesOf(npy.TYPES[type][1].from({length: count}, make))};
}

function repeat(array, dims) { // its elements over and over, in another shape
  const from = npy.elements(array), count = dims.reduce((a, b) => a * b, 1);
  const repeated = from.constructor.from({length: count}, (_, i) => from[i % from.length]);
  return {type: array.type, dims, bytes: npy.bytesOf(repeated)};
}

function makeInputs(session, item, options) {
  const random = randomSource(options.seed, nameOf(item));
  const given = item.list ? readList(item.list) : new Map();
  return session.inputMetadata.map((meta) => {
    const like = given.has(meta.name) ? npy.load(given.get(meta.name)) : undefined;
    const dims = meta.shape.map((d, i) => (typeof d === 'number' ? d : options.dims[d] ?? (like ? like.dims[i] : 1)));
    const isKept = like && !like.type.startsWith('float');
    return {name: meta.name, array: isKept ? repeat(like, dims) : fill(meta.type, dims, random)};
  });
}

// ---- The two runs ----

function toTensor(ort, {type, dims, bytes}) {
  let typed = npy.elements({type, bytes});
  if (type === 'float16' && typeof Float16Array !== 'undefined') typed = new Float16Array(typed.buffer);
  return new ort.Tensor(type, typed, dims);
}

async function runOrt(ort, session, inputs) {
  const feeds = Object.fromEntries(inputs.map(({name, array}) => [name, toTensor(ort, array)]));
  const results = await session.run(feeds);
  return session.outputNames.map((name) => {
    const {type, dims, data} = results[name];
    return {name, array: {type, dims, bytes: npy.bytesOf(data)}};
  });
}

function runBerth(berth, model, inputs, folder) {
  const args = ['run', model, '--output-dir', folder, '--json'];
  inputs.forEach(({name, array}, i) => {
    const file = path.join(folder, `input_${i}.npy`);
    npy.save(file, array);
    args.push('--input', `${name}=${file}`);
  });
  const done = spawnSync(berth, args, {encoding: 'utf8', maxBuffer: 1 << 26});
  if (done.status !== 0) {
    const error = (done.stderr || '').split('\n').find((line) => /^berth: (?!note:)/.test(line));
    return {status: done.status, error: error || `berth ended with ${done.status ?? done.signal}`};
  }
  return {status: 0, outputs: JSON.parse(done.stdout).outputs.map(({name, file}) => ({name, array: npy.load(file)}))};
}

// ---- Comparing ----

// What a float becomes that no integer holds is up to the machine; ONNX Runtime gives the least integer here.
const LEAST = {int32: -(2 ** 31), int64: -(2 ** 63)};

function closeness(a, b, least) {
  let worst = 0, outside = 0, dot = 0, normA = 0, normB = 0;
  for (let i = 0; i < b.length; i++) {
    if (Object.is(a[i], b[i]) || a[i] === b[i] || b[i] === least) {
      if (Number.isFinite(b[i])) dot += b[i] * b[i], normA += b[i] * b[i], normB += b[i] * b[i];
      continue;
    }
    const difference = Math.abs(a[i] - b[i]);
    worst = difference <= worst ? worst : difference;
    outside += difference <= 1e-3 + 1e-3 * Math.abs(b[i]) ? 0 : 1;
    dot += a[i] * b[i], normA += a[i] * a[i], normB += b[i] * b[i];
  }
  if (worst < 1e-6) return {worst, outside, cosine: 1}; // rounding, which has any direction where all is near zero
  return {worst, outside, cosine: normA === 0 && normB === 0 ? 1 : dot / Math.sqrt(normA * normB)};
}

// What is wrong with one output, or nothing. Sums on a rounding edge fall either way in a quantised model, where only
// the cosine counts.
function judge(expected, got, isQuantised, total) {
  if (got === undefined) return `output ${expected.name} is not there`;
  const [e, g] = [expected.array, got.array];
  if (e.type !== g.type || e.dims.join() !== g.dims.join())
    return `output ${expected.name} is ${g.type}[${g.dims}], expected ${e.type}[${e.dims}]`;
  const near = closeness(npy.numbers(g), npy.numbers(e), LEAST[e.type]);
  total.worst = near.worst <= total.worst ? total.worst : near.worst;
  total.cosine = near.cosine >= total.cosine ? total.cosine : near.cosine;
  if (near.cosine >= (isQuantised ? 0.998 : 0.999) && (isQuantised || near.outside === 0)) return undefined;
  return `output ${expected.name}: ${near.outside} elements differ, by up to ${near.worst.toPrecision(3)}; cosine ` +
    near.cosine.toFixed(6);
}

async function compareCase(ort, item, options, folder) {
  const file = fs.readFileSync(item.model);
  if (RANDOM.some((name) => file.includes(name))) return {skip: 'it draws random numbers'};
  let session, inputs, expected;
  try {
    session = await ort.InferenceSession.create(item.model, {logSeverityLevel: 4});
    const other = [...session.inputMetadata, ...session.outputMetadata].find((meta) => !(meta.type in npy.TYPES));
    if (other) return {skip: `${other.name} is of a type that cannot be compared`}; // running some of those crashes
    inputs = makeInputs(session, item, options);
    expected = await runOrt(ort, session, inputs);
  } catch (error) {
    return {skip: `ONNX Runtime: ${String(error.message).split('\n')[0]}`};
  } finally {
    if (session) await session.release();
  }
  const run = runBerth(options.berth, item.model, inputs, folder);
  if (run.status === 3) return {skip: run.error};
  if (run.status !== 0) return {wrong: run.error};
  const total = {worst: 0, cosine: 1}, isQuantised = file.includes('Quantize') || file.includes('Integer');
  // By name: an output that a file lists twice is one output of berth's.
  const outputOf = ({name}) => run.outputs.find((output) => output.name === name);
  const wrong = expected.map((e) => judge(e, outputOf(e), isQuantised, total)).find((w) => w !== undefined);
  return {wrong, note: `largest difference ${total.worst.toPrecision(3)}, cosine ${total.cosine.toFixed(7)}`};
}

async function main() {
  const options = parse(process.argv.slice(2));
  const ort = require(require.resolve('onnxruntime-node', {paths: [options.ort]}));
  const count = {agree: 0, differ: 0, skipped: 0};
  const cases = options.models.flatMap(listCases).filter((item) => nameOf(item).includes(options.only));
  for (const [i, item] of cases.entries()) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'berth-ort-'));
    const {skip, wrong, note} = await compareCase(ort, item, options, folder);
    fs.rmSync(folder, {recursive: true});
    if (skip) count.skipped++;
    else if (wrong) count.differ++;
    else count.agree++;
    const tail = skip ? `# SKIP ${skip}` : `(${wrong || note})`;
    console.log(`${wrong ? 'not ok' : 'ok'} ${i + 1} - ${nameOf(item)} ${tail}`);
  }
  console.log(`1..${cases.length}\n${count.agree} agree, ${count.differ} differ, ${count.skipped} skipped`);
  process.exitCode = count.differ === 0 && count.agree > 0 ? 0 : 1;
}

main();
