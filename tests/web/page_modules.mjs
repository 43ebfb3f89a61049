/** The parts of the page that need no browser. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { check, done, expect, expectEqual } from './tap.mjs';

const { BERTH_SRC: source, BERTH_WEB: site } = process.env;
const part = (path) => import(join(site, path));
const { randomElements } = await part('common/random.js');
const { reader, writer } = await part('common/types.js');
const { isText, seededWeights } = await part('worker/weights.js');
const { summarise } = await part('worker/summary.js');
const { fitArray, readNpy, writeNpy } = await part('app/npy.js');
const { shrink } = await part('app/shrink.js');
const { View } = await part('app/picture_view.js');
const { layoutOf } = await part('app/image.js');
const format = await part('app/format.js');
const { CtxScale, shortTokens } = await part('app/ctx_scale.js');
const { between, stepOf, topOf } = await part('app/chart.js');

async function refuses(body, words) {
  let message = null;
  try {
    await body();
  } catch (error) {
    ({ message } = error);
  }
  expect(message !== null, 'it is taken');
  expect(words.test(message), `it says: ${message}`);
}

/** splitmix64 as published, with BigInts. */
function* splitmix(name) {
  const mask = (1n << 64n) - 1n;
  let state = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(name)) state = ((state ^ BigInt(byte)) * 0x100000001b3n) & mask;
  for (;;) {
    state = (state + 0x9e3779b97f4a7c15n) & mask;
    let z = state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask;
    yield z ^ (z >> 31n);
  }
}

await check('random floats are the sequence of the command line', () => {
  const steps = splitmix('layer0.größe');
  const got = randomElements('f32', 10000, 'layer0.größe');
  got.forEach((value, i) => {
    const expected = Number(steps.next().value >> 40n) * 2 ** -23 - 1;
    expect(value === expected, `element ${i}: got ${value}, expected ${expected}`);
  });
});
await check('random integers and bools too', () => {
  const steps = splitmix('ids');
  const expected = Array.from({ length: 1000 }, () => Number((steps.next().value >> 32n) % 10n));
  expectEqual(Array.from(randomElements('i64', 1000, 'ids'), Number), expected, 'i64');
  expect(
    Array.from(randomElements('bool', 1000, 'ids')).every((value) => value < 2),
    'bool',
  );
});
await check('another seed gives other numbers, the same ones every time', () => {
  const [a, b, c] = [1, 1, 2].map((seed) => randomElements('f32', 10, 'x', seed).join());
  expect(a === b && a !== c, 'seeds');
});

await check('every f16 and bf16 is read and written back', () => {
  for (const type of ['f16', 'bf16']) {
    const [read, write] = [reader(type), writer(type)];
    for (let bits = 0; bits < 65536; bits++) {
      const value = read(bits);
      if (!Number.isNaN(value)) expect(write(value) === bits, `${type} ${bits}: ${value} becomes ${write(value)}`);
    }
  }
});
await check('f16 rounds to the nearest, ties to even, and to infinity above 65504', () => {
  const write = writer('f16');
  expectEqual(
    [1 + 2 ** -11, 1 + 3 * 2 ** -11, 65519, 65520, 2 ** -25, 3 * 2 ** -26, -0].map(write),
    [0x3c00, 0x3c02, 0x7bff, 0x7c00, 0, 1, 0x8000],
    'bits',
  );
});

await check('.npy files go out and in', () => {
  const shapes = { f32: [2, 3], i64: [4], bool: [], f16: [1, 0, 2], u8: [130, 1, 1] };
  for (const [type, shape] of Object.entries(shapes)) {
    const data = randomElements(
      type,
      shape.reduce((a, b) => a * b, 1),
      type,
    );
    const file = Buffer.concat(
      writeNpy({ type, shape, data }).map((piece) => Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)),
    );
    const back = readNpy(file.buffer.slice(file.byteOffset, file.byteOffset + file.length));
    expectEqual([back.type, back.shape, back.data.join()], [type, shape, data.join()], type);
  }
});
await check('.npy files that are no good get a sentence', async () => {
  const bytes = readFileSync(join(source, 'examples/digits/samples.npy'));
  const copy = (end = bytes.length) => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + end);
  await refuses(() => readNpy(new TextEncoder().encode('hello, this is text').buffer), /not a \.npy/);
  await refuses(() => readNpy(copy(40)), /inside its header/);
  await refuses(() => readNpy(copy(bytes.length - 4)), /should hold 2560 bytes/);
  const array = readNpy(copy());
  await refuses(
    () => fitArray(array, { name: 'x', type: 'f32', shape: [1, 1, 8, 8] }),
    /'x' has the shape \[1, 1, 8, 8\]/,
  );
  await refuses(() => fitArray(array, { name: 'x', type: 'i64', shape: [10, 1, 8, 8] }), /type i64/);
  expect(fitArray(array, { name: 'x', type: 'f32', shape: [10, 1, 8, 8] }) === array.data, 'it fits');
});

await check('params of a text graph get weights, as a safetensors file', () => {
  const text =
    '# one\ngraph "g" {\n  input %x : f32[n, 2]\n  param %w : f32[2, 3]\n  param %"a b" : f16[3] # bias\n  %y = matmul(%x, %w)\n  output "y" = %y\n}\n';
  expect(isText(new TextEncoder().encode(text)), 'it is text');
  expect(!isText(readFileSync(join(source, 'tests/onnx/models/small.onnx'))), 'ONNX is not');
  const file = seededWeights(text);
  const length = Number(new DataView(file.buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + length)));
  expectEqual(
    header,
    {
      w: { dtype: 'F32', shape: [2, 3], data_offsets: [0, 24] },
      'a b': { dtype: 'F16', shape: [3], data_offsets: [24, 30] },
    },
    'header',
  );
  expect(file.length === 8 + length + 30, `${file.length} bytes`);
  const first = new DataView(file.buffer).getFloat32(8 + length, true);
  expect(first === randomElements('f32', 1, 'w')[0] / 16, `the first weight is ${first}`);
  expect(
    seededWeights(text.replace('input', 'weights "w.safetensors"\n  input')) === null,
    'a graph that names its file keeps it',
  );
});

await check('a summary leaves out what is not finite', () => {
  const { min, max, mean, notFinite, top } = summarise('f32', Float32Array.of(3, NaN, -1, Infinity, 4));
  expectEqual([min, max, mean, notFinite, top.map(({ index }) => index)], [-1, 4, 2, 2, [4, 0, 2]], 'summary');
  expectEqual(summarise('f32', new Float32Array(0)).min, null, 'of nothing');
});

await check('a drawing fills the square that the network sees, wherever it is', () => {
  const side = 64;
  const stroke = (left, top, size) =>
    Float32Array.from({ length: side * side }, (_, i) => {
      const [x, y] = [(i % side) - left, Math.floor(i / side) - top];
      return x >= 0 && x < size / 4 && y >= 0 && y < size ? 1 : 0;
    });
  const [large, small] = [shrink(stroke(10, 2, 60), side, 8), shrink(stroke(40, 30, 20), side, 8)];
  for (let row = 0; row < 8; row++) expect(large[8 * row + 3] > 0.9 && large[8 * row] === 0, `row ${row}`);
  large.forEach((value, i) => expect(Math.abs(value - small[i]) < 0.1, `${i}: ${value}, ${small[i]}`));
  expect(shrink(new Float32Array(side * side), side, 8) === null, 'nothing');
  const leaning = Float32Array.from({ length: side * side }, (_, i) =>
    Math.abs((i % side) - 44 + 0.2 * Math.floor(i / side)) < 5 ? 1 : 0,
  );
  const straight = shrink(leaning, side, 8);
  for (let row = 0; row < 8; row++)
    expect(
      straight[8 * row + 3] > 0.5 && straight[8 * row + 1] < 0.1 && straight[8 * row + 6] < 0.1,
      `row ${row} leans`,
    );
});

await check('the view of a plan never leaves it', () => {
  const view = new View(10, 110, 1000, 3000);
  view.zoomBy(4, 0, 1);
  expectEqual([view.x0, view.x1, view.y0, view.y1], [10, 35, 2500, 3000], 'zoomed at a corner');
  view.moveBy(-5, 5);
  expectEqual([view.x0, view.y1], [10, 3000], 'moved out');
  view.reveal({ birth: 100, death: 105, offset: 1200, size: 100 });
  expectEqual([view.x0, view.x1, view.y0], [80, 105, 1200], 'revealed');
  view.zoomBy(1e-9);
  expectEqual([view.x0, view.x1, view.y0, view.y1], [10, 110, 1000, 3000], 'as far as it goes');
});

await check('inputs that look like pictures are told', () => {
  const is = (shape, type = 'f32') => layoutOf({ type, shape });
  expectEqual(is([1, 3, 224, 200]), { channels: 3, height: 224, width: 200, last: false }, 'NCHW');
  expectEqual(is([1, 64, 48, 3], 'u8'), { channels: 3, height: 64, width: 48, last: true }, 'NHWC');
  expectEqual([is([1, 128]), is([2, 3, 8, 8]), is([1, 16, 8, 8])], [null, null, null], 'others');
});

await check('numbers are written for people', () => {
  expectEqual(
    [0, 1023, 1024, 1536, 20 * 1024, 5 * 1024 ** 3].map(format.bytes),
    ['0 B', '1,023 B', '1 KiB', '1.5 KiB', '20 KiB', '5 GiB'],
    'bytes',
  );
  expectEqual(
    [null, 0, 1234567, 0.12345, 1e-7, NaN].map(format.number),
    ['–', '0', '1,234,567', '0.1235', '1.00e-7', 'NaN'],
    'numbers',
  );
  expectEqual(
    [format.amount(0, 'node'), format.amount(1, 'node'), format.amount(1234, 'node'), format.amount(2, 'node runs', 'nodes run')],
    ['0 nodes', '1 node', '1,234 nodes', '2 nodes run'],
    'counted nouns',
  );
  expectEqual([format.median([3, 1, 2]), format.median([4, 1, 2, 3])], [2, 2.5], 'medians');
  expectEqual(format.placeOf(23, [2, 3, 4]), '[1, 2, 3]', 'places');
});
await check('contexts go from few tokens to all, by doublings, and are round', () => {
  for (const most of [1, 5, 256, 4096, 40960, 131072, 1 << 20]) {
    const scale = new CtxScale(most);
    const { points } = scale;
    expect(points.at(-1) === most && points[0] >= 1 && points.length < 17, `${most}: ${points}`);
    points.forEach((ctx, i) => expect(i === 0 || ctx > points[i - 1], `${most}: ${points}`));
    for (const ctx of points) expectEqual(scale.at(scale.share(ctx)), ctx, `${ctx} of ${most}`);
    expectEqual([scale.at(0), scale.at(1), scale.at(-1), scale.at(2)], [scale.least, most, scale.least, most], 'ends');
  }
  const scale = new CtxScale(131072);
  for (let i = 0; i <= 1000; i++) {
    const ctx = scale.at(i / 1000);
    expect(Number.isInteger(ctx) && (ctx < 256 || ctx % 16 === 0), `${ctx} tokens`);
  }
  expectEqual([shortTokens(512), shortTokens(4096), shortTokens(1 << 20), shortTokens(40961)], ['512', '4K', '1M', '40,961'], 'words');
});
await check('the chart goes straight from plan to plan, and has room for the memory where that is near', () => {
  const plans = [10, 20, 40].map((ctx) => ({ ctx, weights_size: 100, state_size: 3 * ctx, arena_size: 107 + 3 * ctx }));
  expectEqual([between(plans, 10), between(plans, 15), between(plans, 40)], [[100, 30, 7], [100, 45, 7], [100, 120, 7]], 'sizes');
  expect(topOf(100, 150) > 150 && topOf(100, 1e9) < 110 && topOf(100, 0) < 110, 'the top');
  for (const most of [1, 1000, 3e5, 7e9, 1e12]) {
    const steps = most / stepOf(most);
    expect(steps > 2 && steps <= 5.001, `${steps} steps of ${most}`);
  }
});
/** The transitive static imports of a module; not dynamic ones. */
function closureOf(path, seen = new Set()) {
  if (seen.has(path)) return seen;
  seen.add(path);
  const text = readFileSync(join(site, path), 'utf8');
  for (const [, from] of text.matchAll(/^(?:import|export)\b[^;]*?'(\.[^']+)';/gm)) closureOf(join(path, '..', from), seen);
  return seen;
}

await check('the first screen asks for all of its modules at once, and for no more', () => {
  const html = readFileSync(join(site, 'index.html'), 'utf8');
  const asked = [...html.matchAll(/<link rel="modulepreload" href="([^"]+)">/g)].map(([, path]) => path);
  const needed = [...closureOf('app/first.js')].filter((path) => path !== 'app/first.js');
  expectEqual(asked.sort(), needed.sort(), 'modules');
  expect(html.indexOf('berth-threads.wasm') < html.indexOf('<script') && html.indexOf('boot.js') < html.indexOf('stylesheet'),
    'the module is not the first thing that is asked for');
});

await check('the worker asks for all of its modules at once', () => {
  const text = readFileSync(join(site, 'worker.js'), 'utf8');
  const asked = [...text.matchAll(/^import [^;]*?'\.\/([^']+)';/gm)].map(([, path]) => path);
  expectEqual(asked.sort(), [...closureOf('worker.js')].filter((path) => path !== 'worker.js').sort(), 'modules');
});

done();
