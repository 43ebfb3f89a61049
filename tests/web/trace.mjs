/** The inside of a network as reported by the package: original nodes, steps, and results of each step. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { check, done, expect, expectEqual } from './tap.mjs';

const { BERTH_WEB: site } = process.env;
const { main } = JSON.parse(readFileSync(join(site, 'package/package.json'), 'utf8')); // what Node imports
const { BerthError, load } = await import(pathToFileURL(join(site, 'package', main)));
const berth = await load({ threads: 1 });

const graph = `graph "small" {
  input %x : f32[rows, 3]
  param %w : f32[3, 2]
  %product = matmul(%x, %w)
  %soft = softmax(%product)
  %turned = transpose(%x) {perm = [1, 0]}
  %sums = reduce_sum(%turned) {axes = [1]}
  output "soft" = %soft
  output "sums" = %sums
}
`;

/** A safetensors file with one tensor. */
function weights(name, shape, list) {
  const data = Float32Array.from(list);
  const text = JSON.stringify({ [name]: { dtype: 'F32', shape, data_offsets: [0, data.byteLength] } });
  const header = new TextEncoder().encode(text.padEnd(Math.ceil(text.length / 8) * 8));
  const file = new Uint8Array(8 + header.length + data.byteLength);
  new DataView(file.buffer).setBigUint64(0, BigInt(header.length), true);
  file.set(header, 8);
  file.set(new Uint8Array(data.buffer), 8 + header.length);
  return file;
}

const w = [1, -1, 2, 0.5, -3, 4];
const x = [1, 2, 3, -1, 0, 2, 0.5, 0.25, -2, 4, 1, 1];
const model = await berth.model(new TextEncoder().encode(graph), { weights: weights('w', [3, 2], w) });

await check('a graph says its nodes as they were read', async () => {
  const { nodes, outputs, values } = await model.nodes();
  expectEqual(nodes.map(({ op }) => op), ['matmul', 'softmax', 'transpose', 'reduce_sum'], 'ops');
  expectEqual(nodes[2], { name: nodes[2].name, op: 'transpose', in: ['x'], out: ['turned'], attrs: { perm: [1, 0] } }, 'a node');
  expectEqual(outputs, [{ name: 'soft', value: 'soft' }, { name: 'sums', value: 'sums' }], 'outputs');
  const product = values.find(({ name }) => name === 'product');
  expectEqual(product, { name: 'product', type: 'f32', shape: ['rows', 2] }, 'a value');
  const bound = await model.nodes({ dims: { rows: 4 } });
  expectEqual(bound.values.find(({ name }) => name === 'turned').shape, [3, 4], 'a shape that is bound');
});

await check('steps say what they read and make, and how much that is', async () => {
  const { steps, values } = await model.plan({ dims: { rows: 4 } });
  const names = new Set(values.map(({ name }) => name));
  for (const { in: read, out } of steps) for (const name of [...read, ...out]) expect(name === '' || names.has(name), `'${name}' is not a value`);
  const product = steps.find(({ out }) => out.includes('product'));
  expectEqual(product.flops, 2 * 4 * 3 * 2, 'operations of a product of 4 x 3 x 2');
  expect(product.bytes >= 4 * (12 + 6 + 8), `${product.bytes} bytes are read and written`); // weights may be padded
  expect(!product.once && product.kernel !== '', JSON.stringify(product));
});

await check('steps that prepare weights are told apart, and run once', async () => {
  const digits = await berth.digits();
  const { steps } = await digits.plan({ dims: { batch: 1 } });
  const once = steps.filter((step) => step.once);
  expect(once.length > 0 && once.length < steps.length, `${once.length} of ${steps.length} steps`);
  const session = await digits.session({ dims: { batch: 1 } });
  const image = Float32Array.from({ length: 64 }, (_, i) => (i % 8) / 8);
  const { steps: times } = await session.trace({ image });
  steps.forEach((step, i) => expect(!step.once || times[i] === null, `step ${i} ran again`));
  expect(times.some((ms) => ms !== null && ms >= 0), 'no step took time');
  session.close();
  digits.close();
});

await check('a trace has what the steps made, and a run after it is as ever', async () => {
  const session = await model.session({ dims: { rows: 4 } });
  const first = await session.run({ x });
  const { tensors } = await session.trace({ x });
  const made = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  const expected = [];
  for (let r = 0; r < 4; r++)
    for (let c = 0; c < 2; c++) expected.push(x[3 * r] * w[c] + x[3 * r + 1] * w[2 + c] + x[3 * r + 2] * w[4 + c]);
  expectEqual([...made.get('product').data].map((n) => n.toFixed(4)), expected.map((n) => n.toFixed(4)), 'the product');
  expectEqual(made.get('product').shape, [4, 2], 'its shape');
  expectEqual([...made.get('soft').data], [...first.soft.data], 'the output');
  expectEqual([...(await session.run({ x })).sums.data], [...first.sums.data], 'another run');
  session.close();
});

await check('no more elements are kept than were asked for', async () => {
  const session = await model.session({ dims: { rows: 4 } });
  const { tensors } = await session.trace({ x }, { elements: 3 });
  expect(tensors.length > 0 && tensors.every(({ data }) => data.length <= 3), JSON.stringify(tensors.map(({ data }) => data.length)));
  session.close();
});

await check('what is written into another value is kept dense', async () => {
  const text = `graph "side" {
  input %a : f32[2, 2]
  %e = exp(%a)
  %n = neg(%a)
  %both = concat(%e, %n) {axis = 1}
  output "both" = %both
}
`;
  const beside = await berth.model(new TextEncoder().encode(text));
  const session = await beside.session();
  const { tensors } = await session.trace({ a: [0, 1, 2, 3] });
  const seen = tensors.find(({ name }) => name === 'n');
  if (seen) expectEqual([...seen.data], [-0, -1, -2, -3], 'the second half');
  const { both } = await session.run({ a: [0, 1, 2, 3] });
  expectEqual([both.data[2], both.data[3], both.data[6], both.data[7]], [-0, -1, -2, -3], 'in the whole');
  session.close();
  beside.close();
});

await check('a trace gives its memory back', async () => {
  const session = await model.session({ dims: { rows: 4 } });
  await session.trace({ x });
  const before = berth.memory().used;
  for (let i = 0; i < 20; i++) await session.trace({ x });
  expectEqual(berth.memory().used, before, 'bytes in use');
  session.close();
});

await check('a plan is told in every form, and a form that is none is refused', async () => {
  const dims = { rows: 4 };
  expect((await model.report('svg', { dims })).startsWith('<svg'), 'the picture');
  expect(/<html/.test(await model.report('html', { dims })), 'the page');
  expect((await model.report('csv', { dims })).startsWith('id,lower,upper,size'), 'the table');
  const error = await model.report('pdf', { dims }).catch((e) => e);
  expect(error instanceof BerthError && /there is no report 'pdf'/.test(error.message), String(error));
});

model.close();
berth.close();
done();
