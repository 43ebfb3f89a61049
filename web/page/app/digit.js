/** Draw a digit: after every change it is scaled down to the network's input, and run. */
import { $, colour, el } from './dom.js';
import { bytes, milliseconds, percent } from './format.js';
import { device } from './devices.js';
import { clearAlert, showAlert } from './alerts.js';
import { Pad, SIDE } from './pad.js';
import { shrink } from './shrink.js';
import { digits } from './strokes.js';

const SIZE = 8; // the network's input is 8 by 8

let client = null;
let pad = null;
let model = null;
let session = null;
let sessionDevice = '';
let arena = 0;
let going = false;
let again = false;
let nextShown = 3;
let onSeen = () => {};
let source = { builtIn: true }; // of the model: built in, or after learning

/** The class after the ten digits, if the network knows it. */
export const SIGN = '★';
const nameOf = (label) => (label < 10 ? String(label) : SIGN);

function rowOf(digit) {
  const fill = el('span', { class: 'fill' });
  const value = el('span', { class: 'value', text: '' });
  const name = el('span', { class: 'digit-name', text: nameOf(digit) });
  return { fill, value, item: el('li', { 'data-digit': digit }, name, el('span', { class: 'track' }, fill), value) };
}

const rows = Array.from({ length: 10 }, (_, digit) => rowOf(digit));

/** A row for every class of the network. */
function fitRows(count) {
  if (count === rows.length || count === 0) return;
  while (rows.length < count) rows.push(rowOf(rows.length));
  rows.length = count;
  $('digit-bars').replaceChildren(...rows.map(({ item }) => item));
}

function showSeen(seen) {
  const context = $('digit-seen').getContext('2d');
  const image = context.createImageData(SIZE, SIZE);
  const [r, g, b] = colour('--ink').match(/\d+/g).map(Number);
  seen?.forEach((value, i) => image.data.set([r, g, b, 255 * value], 4 * i));
  context.putImageData(image, 0, 0);
}

function showProbabilities(probabilities) {
  fitRows(probabilities.length);
  const best = probabilities.indexOf(Math.max(...probabilities));
  rows.forEach(({ fill, value, item }, digit) => {
    const share = probabilities[digit] ?? 0;
    fill.style.transform = `scaleX(${share})`;
    value.textContent = probabilities.length ? percent(share) : '';
    item.dataset.probability = share;
    item.classList.toggle('best', probabilities.length > 0 && digit === best);
  });
  const sure = probabilities[best];
  const text = probabilities.length ? nameOf(best) : '–';
  if ($('digit-verdict').textContent !== text && probabilities.length)
    $('digit-live').textContent = `Looks like ${text}, ${percent(sure)}`;
  $('digit-verdict').textContent = text;
  $('digit-note').textContent = probabilities.length ? (sure < 0.6 ? 'not sure' : percent(sure)) : '';
}

async function sessionNow() {
  if (session && sessionDevice === device()) return session;
  if (session) await client.call('free', { session });
  session = null;
  model ??= (await client.call('open', { source })).handle;
  const where = device();
  const made = await client.call('session', { model, options: { device: where, dims: { batch: 1 } } });
  session = made.handle;
  arena = made.arena;
  sessionDevice = where;
  return session;
}

async function recognise() {
  const seen = shrink(pad.ink(), SIDE, SIZE);
  showSeen(seen);
  if (!seen) return showProbabilities([]);
  const handle = await sessionNow();
  const { outputs, timings } = await client.call('run', {
    session: handle,
    inputs: { image: { data: seen } },
    repeats: 1,
  });
  onSeen({ client, model, session: handle, device: sessionDevice, inputs: { image: { data: seen } } });
  const { data } = outputs.find(({ name }) => name === 'probabilities');
  showProbabilities([...data]);
  const weights = `${bytes(arena)} of memory in all, weights and everything else`;
  $('digit-time').textContent = `${milliseconds(timings.total[0])} on ${sessionDevice}; ${weights}.`;
}

let following = Promise.resolve();

/** One run at a time; what is drawn meanwhile is run afterwards. */
function follow() {
  again = true;
  if (going || !client) return;
  going = true;
  following = recogniseAll();
}

async function recogniseAll() {
  while (again) {
    again = false;
    try {
      await recognise();
      clearAlert('digit');
    } catch (error) {
      showAlert('digit', error);
    }
  }
  going = false;
}

/** The model and its current input: null if nothing is drawn. */
export async function digitNow() {
  await sessionNow();
  return { model, classes: source.classes ?? 10, seen: shrink(pad.ink(), SIDE, SIZE) };
}

/** Uses another model from now on: one that has learned, or, with null, the built-in one. */
export async function readWith(learned) {
  const old = { model, session };
  source = learned ?? { builtIn: true };
  loseDigit();
  if (old.session) await client.call('free', old);
  follow();
  await following;
}

/** The worker was terminated, and the model with it. */
export function loseDigit() {
  model = null;
  session = null;
}

function showOne() {
  pad.draw(digits[nextShown]);
  nextShown = (nextShown + 7) % 10;
}

/** `seen` is called for every recognised digit, with the session and its input. */
export function watchDigit(seen) {
  onSeen = seen;
  $('digit-bars').replaceChildren(...rows.map(({ item }) => item));
  pad = new Pad($('digit-pad'), () => requestAnimationFrame(follow));
  $('digit-clear').addEventListener('click', () => pad.clear());
  $('digit-sample').addEventListener('click', showOne);
  addEventListener('themechange', () => showSeen(shrink(pad.ink(), SIDE, SIZE)));
  showProbabilities([]);
}

/** berth is loaded: from now on drawings are recognised. */
export function startDigit(ownClient) {
  client = ownClient;
  if (pad.isEmpty) showOne(); // until the user draws
  follow();
}

export { follow as digitAgain };

/** When everything drawn so far has been recognised, or an error has been shown. */
export const digitDone = () => following;
