/**
 * Teaching the network that reads digits: a few examples of the user's, each slightly varied, mixed with digits that it
 * already knows, so that it does not forget those. An additional class has its own weights, initialised to zero.
 */
import { writeSafetensors } from '../package/safetensors.js';

const SIDE = 8;
const PIXELS = SIDE * SIDE;
const DIGITS = 10;
const BATCH = 32;
const NEW = 12; // rows of a batch with the user's examples
const STEPS = 60;
const HELD = 200; // of the built-in digits are held out: they measure what it still knows

export const learnOptions = (device) => ({ device, dims: { batch: BATCH }, rate: (step) => 0.002 * (1 - step / STEPS) });

const bytesOf = async (name) => {
  const response = await fetch(new URL(`../samples/${name}`, import.meta.url));
  if (!response.ok) throw new Error(`${name}, which learning needs, could not be fetched: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
};

/** The graph with so many classes. */
async function graphOf(classes) {
  const text = new TextDecoder().decode(await bytesOf('digits.berth'));
  return text.replaceAll(/\b10\]/g, `${classes}]`);
}

/** Weights with columns for more classes; new classes are initialised as unlikely. */
function widen(weights, classes) {
  const wide = {};
  for (const [name, { type, shape, data }] of Object.entries(weights)) {
    const old = shape.at(-1);
    if (!name.startsWith('fc2.') || old === classes) {
      wide[name] = { type, shape, data };
      continue;
    }
    const rows = data.length / old;
    const grown = new Float32Array(rows * classes).fill(shape.length === 1 ? Math.min(...data) : 0);
    for (let row = 0; row < rows; row++) grown.set(data.subarray(row * old, (row + 1) * old), row * classes);
    wide[name] = { type, shape: [...shape.slice(0, -1), classes], data: grown };
  }
  return wide;
}

/** The model with these `weights` and classes; the text and the weights suffice to open it again. */
async function modelOf(berth, weights, classes) {
  const text = await graphOf(classes);
  const file = writeSafetensors(widen(weights, classes));
  return berth.model(new TextEncoder().encode(text), { name: 'digits', weights: file });
}

/** The built-in digits: `image(i)`, from 0 to 1, and labels. */
async function knownDigits() {
  const [images, labels] = await Promise.all([bytesOf('digits-images.bin'), bytesOf('digits-labels.bin')]);
  return { labels, image: (i) => Float32Array.from(images.subarray(i * PIXELS, (i + 1) * PIXELS), (v) => v / 16) };
}

/** A deterministic sequence. */
function random(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** The picture moved by at most one pixel, slightly lighter or darker. */
function varied(pixels, next) {
  const [dx, dy, light] = [next(3) - 1, next(3) - 1, 0.85 + next(30) / 100];
  return Float32Array.from({ length: PIXELS }, (_, i) => {
    const [x, y] = [(i % SIDE) - dx, Math.floor(i / SIDE) - dy];
    return x < 0 || y < 0 || x >= SIDE || y >= SIDE ? 0 : Math.min(1, pixels[y * SIDE + x] * light);
  });
}

function batchOf(examples, known, next) {
  const image = new Float32Array(BATCH * PIXELS);
  const labels = new BigInt64Array(BATCH);
  for (let row = 0; row < BATCH; row++) {
    const own = row < NEW ? examples[next(examples.length)] : null;
    const i = HELD + next(known.labels.length - HELD);
    image.set(own ? varied(own.pixels, next) : known.image(i), row * PIXELS);
    labels[row] = BigInt(own ? own.label : known.labels[i]);
  }
  return { image, labels };
}

/** How many of the held-out digits it reads correctly. */
async function countRight(model, known) {
  const session = await model.session({ dims: { batch: HELD } });
  const image = new Float32Array(HELD * PIXELS);
  for (let i = 0; i < HELD; i++) image.set(known.image(i), i * PIXELS);
  const { class: classes } = await session.run({ image });
  session.close();
  return Array.from(classes.data).filter((found, i) => Number(found) === known.labels[i]).length;
}

/** The memory needed for learning, in advance. */
export async function planLearning(berth, base, classes, device) {
  const model = await modelOf(berth, await base.weights(), classes);
  try {
    const { rate: _, ...options } = learnOptions(device);
    return (await model.trainerPlan(options)).report;
  } finally {
    model.close();
  }
}

async function train(trainer, examples, known, onProgress, isStopped, pause) {
  const next = random(1);
  const losses = [];
  while (losses.length < STEPS && !isStopped()) {
    const { image, labels } = batchOf(examples, known, next);
    losses.push(await trainer.step({ image }, labels));
    onProgress({ stage: 'learning', done: losses.length, total: STEPS, loss: losses.at(-1) });
    await pause();
  }
  return losses;
}

/** `examples`: { pixels, label }; returns what the new model can be opened from, and statistics. */
export async function learn(berth, base, { examples, classes, device }, onProgress, isStopped, pause) {
  const known = await knownDigits();
  const model = await modelOf(berth, await base.weights(), classes);
  let trainer = null;
  try {
    const before = await countRight(model, known);
    trainer = await model.trainer(learnOptions(device));
    const begin = performance.now();
    const losses = await train(trainer, examples, known, onProgress, isStopped, pause);
    const ms = performance.now() - begin;
    const learned = await modelOf(berth, await trainer.weights(), classes);
    const after = await countRight(learned, known);
    learned.close();
    const { allocations } = trainer.counters;
    const source = { text: await graphOf(classes), weights: await trainer.save() };
    return { ...source, losses, ms, before, after, held: HELD, arena: trainer.plan.report.arena_size, allocations };
  } finally {
    trainer?.close();
    model.close();
  }
}
