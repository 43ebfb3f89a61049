/**
 * The package in Node: its results equal those of the native program for any number of threads, in the reported memory;
 * errors are reported.
 */
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { casesWithOutputs, models } from './models.mjs';
import { checkExternal } from './external.mjs';
import { checkGguf } from './gguf.mjs';
import { expectOutputs, planNative, runNative } from './native.mjs';
import { readNpy, writeNpy } from './npy.mjs';
import { check, done, expect, expectEqual, skip } from './tap.mjs';

const { BERTH_SRC: source, BERTH_WEB: site } = process.env;
const { BerthError, load } = await import(pathToFileURL(join(site, 'package/node.js')));
const digitsFile = join(source, 'examples/digits/digits.berth');
const weightsFile = join(source, 'examples/digits/digits.safetensors');
const samplesFile = join(source, 'examples/digits/samples.npy');
const samples = readNpy(samplesFile);
const text = (graph) => new TextEncoder().encode(graph);
const folder = mkdtempSync(join(tmpdir(), 'berth-package-'));

/** The error with which a promise is rejected. */
async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('nothing was wrong');
}

async function expectError(promise, status, part) {
  const error = await failure(promise);
  expect(error instanceof BerthError, `this is no BerthError: ${error.stack}`);
  expectEqual(error.status, status, `status of "${error.message}"`);
  expect(error.message.includes(part), `"${error.message}" says nothing of "${part}"`);
}

const bits = (outputs) =>
  Object.entries(outputs).map(([name, { shape, data }]) =>
    `${name} ${shape} ${Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('hex')}`);

/** Deterministic elements. */
function elements({ type, shape }) {
  const count = shape.reduce((product, extent) => product * extent, 1);
  const list = Array.from({ length: count }, (_, i) => ((i * 7919) % 1009) / 1009);
  if (type === 'f32') return Float32Array.from(list);
  if (type === 'i64') return BigInt64Array.from(list, () => 1n);
  return list.map(() => 1);
}

/* The library's version is in the header; the package must have the same. */
async function checkVersion(berth) {
  const { version } = JSON.parse(readFileSync(join(site, 'package/package.json'), 'utf8'));
  await check('the package has the version of the library', () => expectEqual(version, berth.version, 'version'));
}

async function checkDigits(berth) {
  const native = runNative([], { dims: { batch: 10 }, inputs: { image: samplesFile } });
  const model = await berth.digits();
  await check('the digits are those of the native program', async () => {
    const session = await model.session({ dims: { batch: 10 } });
    expectEqual(session.inputs, [{ name: 'image', type: 'f32', shape: [10, 1, 8, 8] }], 'inputs');
    const outputs = await session.run({ image: samples.data });
    expectOutputs(outputs, native, 'cpu');
    expectEqual(Array.from(outputs.class.data, Number), Array.from(native.class.data, Number), 'classes');
    expect(session.timings.total >= session.timings.run && session.timings.run > 0, 'times are not times');
    session.close();
  });
  await check('a model says what it is', () => {
    expectEqual([model.name, model.dims, model.nNodes], ['digits', ['batch'], 16], 'the model');
    expectEqual(model.inputs, [{ name: 'image', type: 'f32', shape: ['batch', 1, 8, 8] }], 'inputs');
    expectEqual(model.outputs.map(({ name, type }) => `${name} ${type}`), ['class i64', 'probabilities f32'], 'outputs');
  });
  await check('text with weights beside it is the same model, to the bit', async () => {
    const other = await berth.model(digitsFile, { weights: weightsFile, name: 'mine' });
    expectEqual(other.name, 'mine', 'its name');
    const results = [];
    for (const from of [model, other]) {
      const session = await from.session({ dims: { batch: 10 } });
      if (from === other) other.close(); // the session keeps what it needs
      results.push(bits(await session.run({ image: samples.data })));
      session.close();
    }
    expectEqual(results[1], results[0], 'outputs');
  });
  model.close();
}

async function checkPlan(berth) {
  const model = await berth.digits();
  await check('a plan is what `berth plan` says', async () => {
    const { report } = await model.plan({ dims: { batch: 10 } });
    const native = planNative([], { dims: { batch: 10 }, threads: berth.threads });
    for (const key of ['activations_size', 'activations_lower_bound', 'weights_size', 'optimal', 'n_steps', 'device', 'dims'])
      expectEqual(report[key], native[key], key);
  });
  await check('no two values share bytes while both live, unless it says so', async () => {
    const { values, report, steps } = await model.plan({ dims: { batch: 10 } });
    expectEqual(steps.length, report.n_steps, 'steps');
    const placed = values.filter(({ offset, size, shares }) => offset >= 0 && size > 0 && shares === '');
    for (const kind of ['input', 'output', 'value', 'scratch']) expect(placed.some((value) => value.kind === kind), kind);
    for (const a of placed) {
      expect(a.offset + a.size <= report.arena_size, `${a.name} ends outside the arena`);
      for (const b of placed) {
        const meet = a.birth < b.death && b.birth < a.death && a.offset < b.offset + b.size && b.offset < a.offset + a.size;
        expect(a === b || !meet, `${a.name} and ${b.name}`);
      }
    }
  });
  await check('options of a plan do what they say', async () => {
    const dims = { batch: 10 };
    const free = await model.plan({ dims });
    const kept = await model.plan({ dims, keepInputs: true });
    expect(kept.report.arena_size >= free.report.arena_size, 'inputs that are kept take no less');
    const input = (plan) => plan.values.find(({ kind }) => kind === 'input');
    expect(input(kept).death === kept.report.n_steps && input(free).death < free.report.n_steps, 'the input lives on');
    const budget = free.report.arena_size - 4096;
    expect((await model.plan({ dims, budget })).report.arena_size <= budget, 'a budget is kept');
    expect(free.svg().startsWith('<svg') && free.svg().trimEnd().endsWith('</svg>'), 'a picture');
  });
  model.close();
}

async function checkModels(berth) {
  for (const { title, file, inputs, dims, missing } of models) {
    if (missing) {
      skip(`${title}: as the native program has it`, missing);
      continue;
    }
    await check(`${title}: as the native program has it`, async () => {
      const model = await berth.model(file);
      const session = await model.session({ dims });
      const given = {}, files = {};
      for (const input of session.inputs) {
        given[input.name] = inputs[input.name] ? readNpy(inputs[input.name]).data : elements(input);
        files[input.name] = inputs[input.name] ?? join(folder, `in${Object.keys(files).length}.npy`);
        if (!inputs[input.name]) writeNpy(files[input.name], input.shape, given[input.name]);
      }
      expectOutputs(await session.run(given), runNative([file], { dims, inputs: files }), 'cpu');
      session.close();
      model.close();
    });
  }
}

/* Quantised models may round differently when a value is on a rounding edge: only their direction is compared. */
const isQuantised = (title) => /int8|_q_/.test(title);

function expectAlike(got, expected, name, isExact) {
  let product = 0, squares = 0, expectedSquares = 0;
  expected.forEach((element, i) => {
    const [a, b] = [Number(got[i]), Number(element)];
    product += a * b;
    squares += a * a;
    expectedSquares += b * b;
    expect(!isExact || Math.abs(a - b) <= 1e-3 + 1e-3 * Math.abs(b), `${name}[${i}] is ${a}, expected ${b}`);
  });
  const cosine = expectedSquares === 0 && squares === 0 ? 1 : product / Math.sqrt(squares * expectedSquares);
  expect(cosine >= (isExact ? 0.999 : 0.998), `${name}: the cosine is ${cosine}`);
}

async function checkOutputs(berth) {
  const cases = casesWithOutputs();
  if (cases.length === 0) skip('real models: as ONNX Runtime has them', 'there are none; BERTH_MODELS names a folder of them');
  for (const { title, file, inputs, outputs } of cases) {
    await check(`${title}: as ONNX Runtime has it`, async () => {
      const model = await berth.model(file), given = {}, dims = {};
      for (const { name, type, shape } of model.inputs) {
        given[name] = { type, ...readNpy(inputs[name]) };
        shape.forEach((dim, axis) => {
          if (model.dims.includes(dim)) dims[dim] = given[name].shape[axis];
        });
      }
      const session = await model.session({ dims });
      const got = await session.run(given);
      expect(Object.keys(outputs).length > 0, 'nothing is expected');
      for (const [name, path] of Object.entries(outputs)) {
        const expected = readNpy(path);
        expectEqual(got[name].shape, expected.shape, `shape of ${name}`);
        expectAlike(got[name].data, expected.data, name, !isQuantised(title));
      }
      session.close();
      model.close();
    });
  }
}

async function checkThreads(one, two) {
  const networks = [
    { name: 'digits', open: (berth) => berth.digits(), dims: { batch: 64 } },
    { name: 'a product', open: (berth) => berth.model(text(
      'graph "p" { input %x : f32[200, 300]\n input %y : f32[300, 250]\n %z = matmul(%x, %y)\n %s = softmax(%z) {axis = 1}\n output "s" = %s }')) },
  ];
  for (const { name, open, dims } of networks) {
    await check(`${name}: one thread and ${two.threads} give the same bits`, async () => {
      const results = [];
      for (const berth of [one, two]) {
        const model = await open(berth);
        const session = await model.session({ dims });
        const inputs = Object.fromEntries(session.inputs.map((input) => [input.name, elements(input)]));
        for (let i = 0; i < 10; i++) results.push(bits(await session.run(inputs)).join());
        session.close();
        model.close();
      }
      expectEqual(new Set(results).size, 1, 'different results');
    });
  }
  await check('sessions have threads of their own, and give them back', async () => {
    const model = await two.digits();
    const sessions = [];
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 4; i++) sessions.push(await model.session({ dims: { batch: 16 } }));
      const image = elements(sessions[0].inputs[0]);
      const results = await Promise.all(sessions.map((session) => session.run({ image })));
      expectEqual(new Set(results.map((outputs) => bits(outputs).join())).size, 1, 'different results');
      for (const session of sessions.splice(0)) session.close();
    }
    model.close();
  });
}

async function checkMemory(berth) {
  await check('200 runs take no memory and make no allocation', async () => {
    const model = await berth.digits();
    const session = await model.session({ dims: { batch: 8 } });
    const image = elements(session.inputs[0]);
    await session.run({ image });
    const before = berth.memory();
    for (let i = 0; i < 200; i++) await session.run({ image });
    expectEqual(berth.memory(), before, 'memory');
    expectEqual(session.counters, { allocations: 0, gpuObjects: 0 }, 'counters');
    session.close();
    model.close();
  });
  await check('what is closed gives its memory back', async () => {
    const use = async () => {
      const model = await berth.model(digitsFile, { weights: weightsFile });
      const session = await model.session({ dims: { batch: 100 } });
      await session.run({ image: elements(session.inputs[0]) });
      const used = berth.memory().used;
      session.close();
      model.close();
      await berth.devices(); // runs after the closing
      return used;
    };
    await use();
    const before = berth.memory();
    expect((await use()) > before.used + 1e5, 'a session takes memory');
    expectEqual(berth.memory(), before, 'memory');
  });
  await check('the bytes of a model are in memory once', async () => {
    const before = berth.memory().used;
    const file = readFileSync(weightsFile);
    const model = await berth.model(digitsFile, { weights: file });
    const taken = berth.memory().used - before;
    expect(taken > file.length && taken < 1.5 * file.length, `${taken} bytes for ${file.length}`);
    model.close();
    await berth.devices();
  });
  await check('an arena over 4 GiB is planned, and refused by its size', async () => {
    const model = await berth.model(text(
      'graph "big" { input %x : f32[n, 4]\n input %y : f32[4, n]\n %z = matmul(%x, %y)\n output "z" = %z }'));
    for (const n of [40000, 1e6]) {
      const size = (await model.plan({ dims: { n } })).report.arena_size;
      expect(size > n * n * 4, `${size} bytes`);
      await expectError(model.session({ dims: { n } }), 'DEVICE_NOMEM', `no block of ${size} bytes`);
    }
    await expectError(model.plan({ dims: { n: 2 ** 40 } }), 'INVALID', 'does not fit in 64 bits');
    const session = await model.session({ dims: { n: 3 } }); // and works afterwards
    expectEqual((await session.run({ x: Array(12).fill(1), y: Array(12).fill(2) })).z.data[8], 8, 'z');
    session.close();
    model.close();
  });
}

const lines = {
  bool: 'Uint8Array', i8: 'Int8Array', u8: 'Uint8Array', i16: 'Int16Array', u16: 'Uint16Array', i32: 'Int32Array',
  u32: 'Uint32Array', i64: 'BigInt64Array', u64: 'BigUint64Array', f16: 'Uint16Array', bf16: 'Uint16Array',
  f32: 'Float32Array', f64: 'Float64Array',
};

async function checkElements(berth) {
  await check('every type goes in and comes out as its array', async () => {
    for (const [type, array] of Object.entries(lines)) {
      const model = await berth.model(text(
        `graph "t" { input %x : ${type}[3]\n %y = reshape(%x) {shape = [3, 1]}\n output "y" = %y }`));
      const session = await model.session();
      const list = type === 'i64' || type === 'u64' ? [0n, 1n, 5n] : [0, 1, 1];
      const given = globalThis[array].from(list);
      const { y } = await session.run({ x: given });
      expectEqual([y.type, y.shape, y.data.constructor.name], [type, [3, 1], array], type);
      expectEqual(Array.from(y.data, String), list.map(String), type);
      expectEqual(bits(await session.run({ x: Array.from(given) })), bits({ y }), `${type} from a list`);
      expectEqual(bits(await session.run({ x: { type, shape: [3], data: given } })), bits({ y }), `${type} as a tensor`);
      session.close();
      model.close();
    }
  });
  await check('an output has the shape that a run finds', async () => {
    const model = await berth.model(text('graph "n" { input %x : f32[6]\n %y = non_zero(%x)\n output "y" = %y }'));
    const session = await model.session();
    for (const x of [[0, 1, 0, 2, 0, 3], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]]) {
      const { y } = await session.run({ x });
      const places = x.flatMap((element, i) => (element ? [String(i)] : []));
      expectEqual([y.shape, Array.from(y.data, String)], [[1, places.length], places], 'places');
    }
    session.close();
    model.close();
  });
}

async function checkFixing(berth) {
  await check('an input that says what a shape is is fixed', async () => {
    const model = await berth.model(text(
      'graph "f" { input %x : f32[6]\n input %s : i64[2]\n %y = reshape(%x, %s)\n output "y" = %y }'));
    expectEqual([model.toFix, model.inputs.length], [['s'], 2], 'the model');
    await expectError(model.plan(), 'UNSUPPORTED', "input 's', which must be fixed");
    await expectError(model.fix('t', { type: 'i64', shape: [2], data: BigInt64Array.of(2n, 3n) }), 'INVALID', "'t'");
    await expectError(model.fix('s', { type: 'f31', shape: [2], data: BigInt64Array.of(2n, 3n) }), 'INVALID', "'f31'");
    await expectError(model.fix('s', { type: 'f32', shape: [2], data: Float32Array.of(2, 3) }), 'INVALID', '');
    await expectError(model.fix('s', { type: 'i64', shape: [3], data: BigInt64Array.of(2n, 3n) }), 'INVALID', '3 elements');
    await expectError(model.fix('s', [2, 3]), 'INVALID', 'a tensor');
    await model.fix('s', { type: 'i64', shape: [2], data: BigInt64Array.of(2n, 3n) });
    expectEqual([model.name, model.toFix, model.inputs.map(({ name }) => name)], ['f', [], ['x']], 'the model');
    const session = await model.session();
    expectEqual((await session.run({ x: [1, 2, 3, 4, 5, 6] })).y.shape, [2, 3], 'the shape');
    session.close();
    model.close();
  });
}

async function checkErrors(berth) {
  const model = await berth.digits();
  const session = await model.session({ dims: { batch: 1 } });
  const image = new Float32Array(64);
  const cases = [
    ['an input that is missing', () => session.run({}), 'INVALID', "input 'image' is missing"],
    ['no inputs at all', () => session.run(), 'INVALID', "input 'image' is missing"],
    ['an input that there is not', () => session.run({ image, more: image }), 'INVALID', "no input 'more'"],
    ['too few elements', () => session.run({ image: new Float32Array(63) }), 'INVALID', '64 elements, but 63 were given'],
    ['another type', () => session.run({ image: new Float64Array(64) }), 'INVALID', 'takes a Float32Array, not a Float64Array'],
    ['a tensor of another shape', () => session.run({ image: { type: 'f32', shape: [64], data: image } }), 'INVALID', '[1, 1, 8, 8]'],
    ['a tensor of another type', () => session.run({ image: { type: 'i32', shape: [1, 1, 8, 8], data: image } }), 'INVALID', 'is f32'],
    ['something that is no array', () => session.run({ image: 7 }), 'INVALID', 'takes an array'],
    ['a dimension that is not bound', () => model.session(), 'INVALID', "dimension 'batch'"],
    ['a dimension that there is not', () => model.plan({ dims: { batch: 1, n: 2 } }), 'INVALID', "no dimension 'n'"],
    ['an extent that is no whole number', () => model.plan({ dims: { batch: 1.5 } }), 'INVALID', 'whole number'],
    ['an option that there is not', () => model.plan({ dims: { batch: 1 }, treads: 2 }), 'INVALID', "no option 'treads'"],
    ['a device that there is not', () => model.plan({ dims: { batch: 1 }, device: 'abacus' }), 'UNSUPPORTED', "'abacus'"],
    ['a budget that is too small', () => model.plan({ dims: { batch: 1 }, budget: 1000 }), 'INFEASIBLE', ''],
    ['weights as f16 on the CPU', () => model.plan({ dims: { batch: 1 }, f16Weights: true }), 'UNSUPPORTED', ''],
    ['WebGPU where there is none', () => model.session({ dims: { batch: 1 }, device: 'webgpu' }), 'UNSUPPORTED', 'navigator.gpu'],
    ['bytes that are no model', () => berth.model(text('hello')), 'UNSUPPORTED', 'not in a format'],
    ['a model that is cut off', () => berth.model(text('graph "x" {')), 'MALFORMED', 'line 1'],
    ['nothing', () => berth.model(new ArrayBuffer(0)), 'UNSUPPORTED', 'not in a format'],
    ['a file that there is not', () => berth.model(join(folder, 'nowhere.onnx')), 'IO', 'nowhere.onnx'],
    ['a folder', () => berth.model(folder), 'IO', 'EISDIR'],
    ['no source', () => berth.model(7), 'INVALID', 'a model is'],
    ['weights of another model', () => berth.model(text('graph "w" { input %x : f32[2]\n param %w : f32[2]\n %y = add(%x, %w)\n output "y" = %y }'), { weights: weightsFile }), 'INVALID', "'w'"],
    ['threads that are no number', () => load({ threads: 0 }), 'INVALID', 'threads'],
    ['a program that is not there', () => load({ base: pathToFileURL(`${folder}/`) }), 'IO', 'berth'],
  ];
  for (const [what, act, status, part] of cases) await check(`${what} is an error that says so`, () => expectError(act(), status, part));
  await check('errors leave everything as it was', async () => {
    expectEqual((await session.run({ image })).class.shape, [1], 'shape');
  });
  await check('a session that is closed says so', async () => {
    session.close();
    session.close();
    await expectError(session.run({ image }), 'INVALID', 'the session is closed');
    model.close();
    await expectError(model.session({ dims: { batch: 1 } }), 'INVALID', 'the model is closed');
  });
}

async function checkSources(berth) {
  const file = join(source, 'tests/onnx/models/small.onnx'), bytes = readFileSync(file);
  const server = createServer((request, response) => {
    if (request.url !== '/small.onnx') response.statusCode = 404;
    if (request.headers['x-length'] !== undefined) response.setHeader('content-length', bytes.length);
    response.end(request.url === '/small.onnx' ? bytes : 'no');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = `http://127.0.0.1:${server.address().port}`;
  const padded = new Uint8Array(bytes.length + 9);
  padded.set(bytes, 5);
  const sources = {
    'a path': file, 'the URL of a file': pathToFileURL(file), 'an address': `${address}/small.onnx`,
    'a Buffer': bytes, 'a part of a larger buffer': padded.subarray(5, 5 + bytes.length), 'an ArrayBuffer': bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length),
    'a Blob': new Blob([bytes]),
  };
  let expected;
  for (const [what, from] of Object.entries(sources)) {
    await check(`${what} is read`, async () => {
      const seen = [];
      const model = await berth.model(from, { onProgress: (progress) => seen.push(progress) });
      const { inputs, outputs, nNodes } = model;
      expectEqual({ inputs, outputs, nNodes }, (expected ??= { inputs, outputs, nNodes }), 'the model');
      expectEqual([seen.at(-1).stage, seen.at(-1).done], ['reading the model', bytes.length], 'progress');
      model.close();
    });
  }
  await check('an address that gives nothing is an error', () => expectError(berth.model(`${address}/x`), 'IO', '404'));
  server.close();
}

async function checkProgress() {
  await check('it says how far it is', async () => {
    const seen = [];
    const onProgress = (progress) => seen.push(progress);
    const berth = await load({ threads: 1, onProgress });
    const model = await berth.digits();
    await model.plan({ dims: { batch: 1 }, onProgress });
    const session = await model.session({ dims: { batch: 1 }, onProgress });
    const stages = seen.map(({ stage }) => stage).filter((stage, i, all) => stage !== all[i - 1]);
    expectEqual(stages, ['fetching the program', 'planning', 'compiling kernels', 'writing weights', 'preparing weights'], 'stages');
    const size = readFileSync(join(site, 'package/berth.wasm')).length;
    expect(seen.some(({ done, total }) => done === size && total === size), 'the size of the program');
    for (const { done, total } of seen) expect(total === 0 || done <= total, `${done} of ${total}`);
    const { length } = seen;
    await session.run({ image: new Float32Array(64) });
    expectEqual(seen.length, length, 'a run says nothing');
    berth.close();
  });
}

async function checkListeners(berth) {
  await check('a listener that throws is heard of, and stops nothing', async () => {
    const heard = [];
    process.on('uncaughtException', (error) => heard.push(error.message));
    const onProgress = ({ stage }) => {
      throw new Error(stage);
    };
    const model = await berth.model(digitsFile, { weights: weightsFile, onProgress });
    const session = await model.session({ dims: { batch: 10 }, onProgress });
    expectEqual((await session.run({ image: samples.data })).class.shape, [10], 'shape');
    process.removeAllListeners('uncaughtException');
    for (const stage of ['reading the model', 'planning', 'writing weights']) expect(heard.includes(stage), stage);
    session.close();
    model.close();
  });
}

async function checkClosing() {
  await check('what was closed says so, and Node may end', async () => {
    for (const threads of [1, 3]) {
      const berth = await load({ threads });
      expectEqual(berth.threads, threads, 'threads');
      const model = await berth.digits();
      berth.close();
      berth.close();
      await expectError(berth.digits(), 'INVALID', 'berth is closed');
      await expectError(model.plan({ dims: { batch: 1 } }), 'INVALID', 'berth is closed');
      model.close();
    }
  });
}

/* The README is for people who copy from it. */
/* A copy of the package whose threads end at once, like one for which the machine has no memory. */
async function checkDeadThreads() {
  const copy = join(folder, 'dead');
  cpSync(join(site, 'package'), copy, { recursive: true });
  const file = join(copy, 'thread.js');
  writeFileSync(file, readFileSync(file, 'utf8').replace('exports.thread(number)', "throw new Error('no more')"));
  const { load: loadCopy } = await import(pathToFileURL(join(copy, 'node.js')));
  await check('who waits for a thread that has died is told', async () => {
    const berth = await loadCopy({ threads: 2 });
    const session = await (await berth.digits()).session({ dims: { batch: 1 } });
    session.close(); // waits for its threads to end
    const error = await failure(berth.digits());
    expect(error.message.includes('one of its threads stopped'), error.message);
    berth.close();
  });
}

const AUDIO = `graph "audio" {
  input %x : f32[batch, 1, samples]
  input %ids : i64[batch, 2]
  input %mask : i64[batch, 4]
  param %w : f32[1, 1, 256]
  param %t : f32[7, 2]
  const %one : f32[] = [1]
  %c = conv(%x, %w)
  %g = gather(%t, %ids)
  %m = cast(%mask) {to = "f32"}
  %n = sub(%one, %m)
  output "c" = %c
  output "g" = %g
  output "n" = %n
}
`;

async function checkGuess(berth) {
  await check('dimensions that a model takes are found, and what its inputs may hold', async () => {
    const model = await berth.model(new TextEncoder().encode(AUDIO));
    const { dims, inputs } = await model.guess({ batch: 3 });
    expectEqual(dims, { batch: 1, samples: 256 }, 'the least dimensions');
    expectEqual(inputs.map(({ name, shape, below = null, value = null }) => [name, shape, below, value]),
      [['x', [1, 1, 256], null, null], ['ids', [1, 2], 7, null], ['mask', [1, 4], null, 1]], 'the inputs');
    expectEqual((await model.guess({ batch: 3, samples: 300 })).dims, { batch: 3, samples: 300 }, 'dimensions that it takes');
    await expectError(model.guess({ height: 1 }), 'INVALID', "no dimension 'height'");
    model.close();
  });
}

async function checkModule() {
  await check('a module that was compiled elsewhere is taken, with threads or for one', async () => {
    for (const [name, threads, has] of [['berth-threads.wasm', 2, 2], ['berth.wasm', 2, 1]]) {
      const module = WebAssembly.compile(readFileSync(join(site, 'package', name)));
      const own = await load({ module, threads });
      expectEqual(own.threads, has, `threads of ${name}`);
      const model = await own.digits(), session = await model.session({ dims: { batch: 1 } });
      const { class: found } = await session.run({ image: samples.data.slice(0, 64) });
      expectEqual(Number(found.data[0]), 0, 'the first sample'); // they are in the order of the digits
      own.close();
    }
  });
  await check('what is no module, or one that needs what is not here, is an error that says so', async () => {
    await expectError(load({ module: {} }), 'INVALID', 'module takes a WebAssembly.Module');
    const module = await WebAssembly.compile(readFileSync(join(site, 'package/berth-threads.wasm')));
    await expectError(load({ module, threads: 1 }), 'UNSUPPORTED', 'berth.wasm needs none');
  });
}

async function checkReadme() {
  const readme = readFileSync(join(source, 'web/package/README.md'), 'utf8');
  const examples = Array.from(readme.matchAll(/```js\n(.*?)```/gs), (match) => match[1]);
  await check('the README has examples', () => expect(examples.length > 0, 'none'));
  for (const [i, example] of examples.entries()) {
    await check(`example ${i + 1} of the README runs`, async () => {
      const file = join(folder, `example${i}.mjs`);
      const code = example.replaceAll(/from 'berth-arena'/g, `from '${pathToFileURL(join(site, 'package/node.js'))}'`)
        .replaceAll('model.onnx', join(source, 'tests/onnx/models/small.onnx'))
        .replaceAll('model.gguf', join(source, 'examples/tale/tale.gguf'));
      writeFileSync(file, code.replaceAll('console.log', 'globalThis.said.push'));
      globalThis.said = [];
      await import(pathToFileURL(file));
      expect(globalThis.said.length > 0, 'it says nothing');
    });
  }
}

try {
  const one = await load({ threads: 1 }), two = await load({ threads: 2 });
  await checkVersion(one);
  for (const berth of [one, two]) {
    await checkDigits(berth);
    await checkElements(berth);
    await checkMemory(berth);
  }
  await checkPlan(one);
  await checkGuess(one);
  await checkModels(two);
  await checkOutputs(two);
  await checkThreads(one, two);
  await checkGguf([one, two], { folder, expectError });
  await checkExternal(one, BerthError);
  await checkFixing(one);
  await checkErrors(one);
  await checkSources(one);
  await checkProgress();
  await checkListeners(one);
  one.close();
  two.close();
  await checkClosing();
  await checkDeadThreads();
  await checkModule();
  await checkReadme();
} finally {
  rmSync(folder, { recursive: true });
}
done();
