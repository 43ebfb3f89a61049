/** The network that reads digits learns what the user draws: examples, the memory needed, its loss, and the result. */
import { $, colour, el, sharpen } from './dom.js';
import { amount, bytes, exactBytes, milliseconds } from './format.js';
import { clearAlert, showAlert } from './alerts.js';
import { busy } from './busy.js';
import { device } from './devices.js';
import { SIGN, digitNow, readWith } from './digit.js';

const SIZE = 8;
const LABELS = 11; // ten digits, and the user's own sign
const MOST = 24; // examples

let client = null;
let examples = []; // { pixels, label }
let losses = [];
let isLearning = false;
let hasLearned = false;

const nameOf = (label) => (label < 10 ? String(label) : SIGN);

/** The number of classes it will have: one more if there is an example of the sign. */
const classesWith = (known) => (examples.some(({ label }) => label === 10) ? LABELS : known);

function pictureOf({ pixels, label }, i) {
  const canvas = el('canvas', { class: 'seen', width: SIZE, height: SIZE, 'aria-hidden': 'true' });
  const context = canvas.getContext('2d');
  const image = context.createImageData(SIZE, SIZE);
  const [r, g, b] = colour('--ink').match(/\d+/g).map(Number);
  pixels.forEach((value, at) => image.data.set([r, g, b, 255 * value], 4 * at));
  context.putImageData(image, 0, 0);
  const remove = () => {
    examples = examples.filter((_, at) => at !== i);
    showExamples();
  };
  return el(
    'li',
    { 'data-label': label },
    el(
      'button',
      { type: 'button', class: 'quiet', 'aria-label': `Example ${i + 1}: ${nameOf(label)}. Remove it`, title: 'Remove it', onclick: remove },
      canvas,
      el('span', { text: nameOf(label) }),
    ),
  );
}

function showExamples() {
  $('teach-examples').replaceChildren(...examples.map(pictureOf));
  $('teach-learn').disabled = examples.length === 0 || isLearning;
  $('teach-forget').disabled = isLearning || (!hasLearned && examples.length === 0);
  showMemory();
}

/** The exact memory that it will need, in advance. */
async function showMemory() {
  if (!$('teach').open || isLearning) return;
  try {
    const { model, classes } = await digitNow();
    const report = await client.call('learnPlan', { model, classes: classesWith(classes), device: device() });
    $('teach-memory').textContent =
      `Learning takes ${bytes(report.arena_size)} in one block (${exactBytes(report.arena_size)}): ` +
      `${bytes(report.state_size)} of weights and what the optimiser keeps of them, and ` +
      `${bytes(report.arena_size - report.state_size)} for everything else. A step allocates nothing.`;
    $('teach-memory').dataset.bytes = report.arena_size;
  } catch (error) {
    showAlert('digit', error);
  }
}

async function addExample(label) {
  try {
    const { seen } = await digitNow();
    if (!seen) {
      $('teach-says').textContent = 'Draw something first.';
      return;
    }
    examples = [...examples, { pixels: seen, label }].slice(-MOST);
    $('teach-says').textContent = '';
    showExamples();
  } catch (error) {
    showAlert('digit', error);
  }
}

function paintLosses() {
  const canvas = $('teach-chart');
  canvas.hidden = losses.length === 0;
  if (canvas.hidden) return;
  const { width, height } = canvas.getBoundingClientRect();
  const context = sharpen(canvas, width, height);
  const most = Math.max(...losses);
  const x = (i) => 6 + (i / Math.max(1, canvas.dataset.steps - 1)) * (width - 12);
  const y = (loss) => height - 6 - (loss / most) * (height - 26);
  context.clearRect(0, 0, width, height);
  context.strokeStyle = colour('--line');
  context.strokeRect(0.5, height - 5.5, width - 1, 0);
  context.beginPath();
  losses.forEach((loss, i) => context.lineTo(x(i), y(loss)));
  context.strokeStyle = colour('--accent');
  context.lineWidth = 2;
  context.stroke();
  context.font = '12px system-ui, sans-serif';
  context.fillStyle = colour('--ink-soft');
  context.fillText(`loss ${losses[0].toFixed(2)}`, 6, 13);
  const last = `${losses.at(-1).toFixed(3)} after ${amount(losses.length, 'step')}`;
  context.fillText(last, width - 6 - context.measureText(last).width, 13);
}

function sayLearned({ ms, before, after, held, arena, allocations }) {
  const words = [
    `It learned in ${milliseconds(ms)}: the loss fell from ${losses[0].toFixed(2)} to ${losses.at(-1).toFixed(3)}, in a ` +
      `block of ${bytes(arena)}, with ${allocations === 0 ? 'no allocations' : amount(allocations, 'allocation')}.`,
    `Of ${held} other digits it reads ${after}; before it read ${before}.`,
  ];
  $('teach-says').textContent = words.join(' ');
  Object.assign($('teach').dataset, { first: losses[0], last: losses.at(-1), before, after, allocations });
}

async function learn() {
  isLearning = true;
  losses = [];
  $('teach').dataset.learning = 'yes';
  showExamples();
  clearAlert('digit');
  $('teach-says').textContent = '';
  try {
    const { model, classes: known } = await digitNow();
    const classes = classesWith(known);
    const result = await busy('learning', (onProgress) =>
      client.call('learn', { model, examples, classes, device: device() }, (progress) => {
        onProgress(progress);
        losses.push(progress.loss);
        $('teach-chart').dataset.steps = progress.total;
        paintLosses();
      }),
    );
    const { text, weights } = result;
    await readWith({ file: new Blob([text]), weights: new Blob([weights]), name: 'digits', classes });
    hasLearned = true;
    sayLearned(result);
  } catch (error) {
    showAlert('digit', error);
  }
  isLearning = false;
  delete $('teach').dataset.learning;
  showExamples();
}

async function forget() {
  examples = [];
  losses = [];
  if (hasLearned) await readWith(null);
  hasLearned = false;
  $('teach-says').textContent = '';
  paintLosses();
  showExamples();
}

export function watchTeach(ownClient) {
  client = ownClient;
  const buttons = Array.from({ length: LABELS }, (_, label) =>
    el('button', {
      type: 'button',
      'data-test': `teach-${label}`,
      text: nameOf(label),
      'aria-label': label < 10 ? `It is a ${label}` : 'It is a new sign',
      title: label < 10 ? undefined : 'a sign of your own',
      onclick: () => addExample(label),
    }),
  );
  $('teach-labels').replaceChildren(el('span', { class: 'hint', text: 'This is' }), ...buttons);
  $('teach').addEventListener('toggle', showMemory);
  $('teach-learn').addEventListener('click', learn);
  $('teach-forget').addEventListener('click', () => forget().catch((error) => showAlert('digit', error)));
  addEventListener('themechange', () => {
    paintLosses();
    showExamples();
  });
  new ResizeObserver(paintLosses).observe($('teach-chart'));
}
