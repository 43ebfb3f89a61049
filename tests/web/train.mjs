/** Learning in the package: steps against the same computed here by hand, in the memory that was planned. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readNpy } from './npy.mjs';
import { check, done, expect, expectEqual } from './tap.mjs';

const { BERTH_SRC: source, BERTH_WEB: site } = process.env;
const { main } = JSON.parse(readFileSync(join(site, 'package/package.json'), 'utf8')); // what Node takes
const { BerthError, load } = await import(pathToFileURL(join(site, 'package', main)));
const { writeSafetensors } = await import(pathToFileURL(join(site, 'package/safetensors.js')));
const berth = await load({ threads: 1 });

const ROWS = 5, IN = 3, OUT = 4;
const sequence = (count, seed) => Array.from({ length: count }, (_, i) => Math.sin(1 + seed + 1.7 * i));
const [x, w] = [sequence(ROWS * IN, 1), sequence(IN * OUT, 2)];
const wanted = sequence(ROWS * OUT, 3);
const labels = [1, 0, 3, 2, 1];

const textOf = (end) => new TextEncoder().encode(`graph "line" {
  input %x : f32[rows, ${IN}]
  param %w : f32[${IN}, ${OUT}]
  %y = matmul(%x, %w)
${end}}
`);
const graphs = {
  mse: textOf('  output "y" = %y\n'),
  cross_entropy: textOf('  %p = softmax(%y) {axis = 1}\n  %best = arg_max(%p) {axis = 1, keepdims = 0}\n  output "best" = %best\n  output "p" = %p\n'),
};
const weights = writeSafetensors({ w: { type: 'f32', shape: [IN, OUT], data: Float32Array.from(w) } });
const modelOf = (loss, from = berth) => from.model(graphs[loss], { weights });

/* ---- By hand ---- */

const product = (a) => Array.from({ length: ROWS * OUT }, (_, i) => {
  const [row, column] = [Math.floor(i / OUT), i % OUT];
  return a.reduce((sum, _v, k) => (k < IN ? sum + x[row * IN + k] * a[k * OUT + column] : sum), 0);
});

/** The loss, and its derivative by y. */
const losses = {
  mse(y) {
    const off = y.map((value, i) => value - wanted[i]);
    return [off.reduce((sum, d) => sum + d * d, 0) / off.length, off.map((d) => (2 * d) / off.length)];
  },
  cross_entropy(y) {
    let loss = 0;
    const slope = [];
    for (let row = 0; row < ROWS; row++) {
      const part = y.slice(row * OUT, (row + 1) * OUT).map(Math.exp), sum = part.reduce((a, b) => a + b, 0);
      loss -= Math.log(part[labels[row]] / sum) / ROWS;
      slope.push(...part.map((e, i) => (e / sum - (i === labels[row] ? 1 : 0)) / ROWS));
    }
    return [loss, slope];
  },
};

const optimizers = {
  sgd({ rate, momentum, weightDecay }) {
    const velocity = w.map(() => 0);
    return (now, slope) => now.map((value, i) => {
      velocity[i] = momentum * velocity[i] + slope[i] + weightDecay * value;
      return value - rate * velocity[i];
    });
  },
  adamw({ rate, beta1, beta2, epsilon, weightDecay }) {
    const [mean, square] = [w.map(() => 0), w.map(() => 0)];
    let step = 0;
    return (now, slope) => {
      step++;
      return now.map((value, i) => {
        mean[i] = beta1 * mean[i] + (1 - beta1) * slope[i];
        square[i] = beta2 * square[i] + (1 - beta2) * slope[i] ** 2;
        const root = Math.sqrt(square[i] / (1 - beta2 ** step)) + epsilon;
        return value - rate * (mean[i] / (1 - beta1 ** step) / root + weightDecay * value);
      });
    };
  },
};

function byHand(loss, optimizer, options, steps) {
  const update = optimizers[optimizer](options);
  let now = w;
  return Array.from({ length: steps }, () => {
    const [value, slope] = losses[loss](product(now));
    const grad = now.map((_, i) => {
      const [k, column] = [Math.floor(i / OUT), i % OUT];
      return Array.from({ length: ROWS }, (_v, row) => x[row * IN + k] * slope[row * OUT + column]).reduce((a, b) => a + b, 0);
    });
    now = update(now, grad);
    return value;
  });
}

const near = (got, expected, what) =>
  got.forEach((value, i) => expect(Math.abs(value - expected[i]) < 2e-5 * Math.max(1, Math.abs(expected[i])),
    `${what}: element ${i} is ${value}, by hand ${expected[i]}`));

/* ---- Steps ---- */

const answers = { mse: wanted, cross_entropy: labels };
const common = { momentum: 0.8, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0.02, rate: 0.1 };

for (const loss of ['mse', 'cross_entropy']) {
  for (const optimizer of ['sgd', 'adamw']) {
    await check(`ten steps of ${optimizer} with ${loss} are those computed by hand`, async () => {
      const model = await modelOf(loss);
      const trainer = await model.trainer({ loss, optimizer, dims: { rows: ROWS }, ...common });
      const got = [];
      for (let i = 0; i < 10; i++) got.push(await trainer.step({ x }, answers[loss]));
      near(got, byHand(loss, optimizer, common, 10), 'losses');
      expectEqual([trainer.steps, trainer.counters.allocations], [10, 0], 'steps, and allocations');
      expect(got[9] < got[0], 'it learns nothing');
      trainer.close();
      model.close();
    });
  }
}

await check('a rate may be a function of the steps that were done', async () => {
  const model = await modelOf('mse');
  const asked = [];
  const trainer = await model.trainer({ loss: 'mse', optimizer: 'sgd', dims: { rows: ROWS }, momentum: 0, weightDecay: 0,
    rate: (steps) => (asked.push(steps), 0) });
  const got = [await trainer.step({ x }, wanted), await trainer.step({ x }, wanted)];
  expectEqual([asked, got[0]], [[0, 1], got[1]], 'steps, and the same loss twice');
  for (const thing of [trainer, model]) thing.close();
});

await check('what it takes is known before it is taken, and is one block', async () => {
  const model = await berth.digits();
  const options = { dims: { batch: 16 } };
  const planned = await model.trainerPlan(options);
  const before = berth.memory().used;
  const trainer = await model.trainer(options);
  expectEqual(trainer.plan.report.arena_size, planned.report.arena_size, 'bytes');
  expect(planned.report.state_size >= 3 * 190000, `weights and two moments: ${planned.report.state_size}`);
  expect(berth.memory().used - before >= planned.report.arena_size, 'the block is not there');
  trainer.close();
  model.close();
});

await check('nothing is left of a trainer that is closed', async () => {
  const round = async () => {
    const model = await modelOf('mse');
    const trainer = await model.trainer({ loss: 'mse', dims: { rows: ROWS } });
    await trainer.step({ x }, wanted);
    await trainer.saveCheckpoint();
    model.close(); // the trainer has what it needs
    await trainer.step({ x }, wanted);
    trainer.close();
    await berth.devices(); // what was closed is gone
    return berth.memory().used;
  };
  await round();
  const first = await round();
  for (let i = 0; i < 3; i++) expectEqual(await round(), first, 'bytes in use');
});

await check('a checkpoint goes on to the same numbers, and weights make the same model', async () => {
  const model = await modelOf('cross_entropy');
  const trainer = await model.trainer({ dims: { rows: ROWS } });
  for (let i = 0; i < 3; i++) await trainer.step({ x }, labels);
  const saved = await trainer.saveCheckpoint();
  const file = await trainer.save();
  const next = [await trainer.step({ x }, labels), await trainer.step({ x }, labels)];
  await trainer.loadCheckpoint(saved);
  expectEqual(trainer.steps, 3, 'steps');
  expectEqual([await trainer.step({ x }, labels), await trainer.step({ x }, labels)], next, 'losses');
  const learned = await berth.model(graphs.cross_entropy, { weights: file });
  const session = await learned.session({ dims: { rows: ROWS } });
  const { p } = await session.run({ x });
  const loss = labels.reduce((sum, label, row) => sum - Math.log(p.data[row * OUT + label]) / ROWS, 0);
  near([loss], [next[0]], 'the loss of the model that was saved');
  expectEqual((await model.weights()).w.data[0], Math.fround(w[0]), 'a weight of the model itself');
  for (const thing of [session, learned, trainer, model]) thing.close();
});

await check('two runs that make a step are one of all rows', async () => {
  const halves = await berth.model(graphs.mse, { weights });
  const options = { loss: 'mse', optimizer: 'sgd', ...common };
  const whole = await halves.trainer({ ...options, dims: { rows: 4 } });
  const parts = await halves.trainer({ ...options, dims: { rows: 2 }, accumulate: 2 });
  const row = (list, width, from, to) => list.slice(from * width, to * width);
  for (let i = 0; i < 3; i++) {
    const all = await whole.step({ x: row(x, IN, 0, 4) }, row(wanted, OUT, 0, 4));
    const one = await parts.step({ x: row(x, IN, 0, 2) }, row(wanted, OUT, 0, 2));
    const two = await parts.step({ x: row(x, IN, 2, 4) }, row(wanted, OUT, 2, 4));
    near([(one + two) / 2], [all], 'loss');
  }
  expectEqual(parts.steps, 3, 'steps');
  for (const thing of [whole, parts, halves]) thing.close();
});

await check('only the weights that are named learn', async () => {
  const model = await berth.digits();
  const trainer = await model.trainer({ dims: { batch: 4 }, params: ['fc2.weight', 'fc2.bias'] });
  const images = Float32Array.from(readNpy(join(source, 'examples/digits/samples.npy')).data.slice(0, 256));
  await trainer.step({ image: images }, [1, 2, 3, 4]);
  expectEqual(Object.keys(await trainer.weights()).sort(), ['fc2.bias', 'fc2.weight'], 'what learns');
  for (const thing of [trainer, model]) thing.close();
});

await check('with two threads the losses are the same to the bit', async () => {
  const both = [];
  for (const threads of [1, 2]) {
    const own = await load({ threads });
    const model = await own.digits();
    const trainer = await model.trainer({ dims: { batch: 16 } });
    const image = Float32Array.from({ length: 16 * 64 }, (_, i) => ((i * 7919) % 17) / 16);
    const list = [];
    for (let i = 0; i < 3; i++) list.push(await trainer.step({ image }, Array.from({ length: 16 }, (_, k) => k % 10)));
    both.push(list);
    own.close();
  }
  expectEqual(both[0], both[1], 'losses');
});

/* ---- What is wrong ---- */

const dims = { rows: ROWS };
const wrong = [
  ['a loss that there is not', { loss: 'hinge' }, "there is no loss 'hinge'; they are cross_entropy, mse"],
  ['an optimizer that there is not', { optimizer: 'lion' }, "there is no optimizer 'lion'"],
  ['an option that there is not', { speed: 1 }, "there is no option 'speed'"],
  ['a rate below 0', { rate: -1 }, 'rate takes a number from 0 on'],
  ['half a run', { accumulate: 0.5 }, 'accumulate takes a whole number'],
  ['a weight that the model has not', { params: ['v'] }, "the model has no weight 'v'"],
  ['an input for a weight', { params: ['x'] }, "the model has no weight 'x'"],
  ['an output that the model has not', { output: 'q' }, "the model has no output 'q'"],
  ['classes without an axis', { output: 'best' }, 'cross_entropy needs an output [batch, ..., classes]'],
  ['a dimension that is not bound', { dims: {} }, "dimension 'rows'"],
];
const model = await modelOf('cross_entropy');
for (const [what, options, part] of wrong) {
  await check(`${what} is an error that says so`, async () => {
    for (const make of [() => model.trainer({ dims, ...options }), () => model.trainerPlan({ dims, ...options })]) {
      const error = await make().then(() => null, (e) => e);
      expect(error instanceof BerthError && error.message.includes(part), `${error?.stack}`);
    }
  });
}
await check('too few labels are an error that says so, and it goes on', async () => {
  const trainer = await model.trainer({ dims });
  const error = await trainer.step({ x }, [1, 2]).then(() => null, (e) => e);
  expect(error instanceof BerthError && error.message.includes('has 5 elements, but 2 were given'), `${error?.stack}`);
  expectEqual(trainer.steps, 0, 'steps');
  expect((await trainer.step({ x }, labels)) > 0, 'no loss');
  trainer.close();
});
await check('a checkpoint of something else is an error that says so', async () => {
  const trainer = await model.trainer({ dims });
  const error = await trainer.loadCheckpoint(new Uint8Array(64)).then(() => null, (e) => e);
  expect(error instanceof BerthError, `${error?.stack}`);
  trainer.close();
});

berth.close();
done();
