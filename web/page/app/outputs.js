/** The outputs: statistics of each, the largest elements, a small picture, and downloads. */
import { $, el, save } from './dom.js';
import { amount, fileName, number, placeOf, typeOf } from './format.js';
import { chartOf } from './heat.js';
import { writeNpy } from './npy.js';
import { givenLabels, labelsFor, takeLabels } from './labels.js';
import { reader } from '../common/types.js';

const SHOWN = 5;

let current = [];
let inputs = []; // of the model: they tell its kind

/** For tests and for the console: the arrays of the last run, by name. */
export const outputsOf = () =>
  Object.fromEntries(current.map(({ name, type, shape, data }) => [name, { type, shape, data }]));

function jsonOf({ name, type, shape, data }) {
  const read = reader(type);
  const numbers = Array.from(data, (element) => (typeof element === 'bigint' ? Number(element) : read(element)));
  return JSON.stringify({ name, type, shape, data: numbers });
}

/** The name of a class. */
function labelAt({ shape }, labels, index) {
  return labels ? labels[index % shape.at(-1)] : null;
}

const isSeeded = () => $('run').hasAttribute('data-seeded');

/** The best class by name, and the source of the names. */
function best(output, known) {
  const [top] = output.summary.top;
  if (!known || !top) return null;
  return el(
    'p',
    { class: 'best-label', 'data-test': 'best' },
    el('b', { text: labelAt(output, known.labels, top.index) }),
    el('span', { class: 'hint', text: ` ${number(top.value)}; names of ${known.what}${isSeeded() ? '; its weights are random numbers' : ''}` }),
  );
}

function table({ shape, summary }, known) {
  return el(
    'table',
    { 'data-test': 'top' },
    el('caption', { text: 'Largest' }),
    el(
      'thead',
      { class: 'unseen' },
      el('tr', {}, el('th', { scope: 'col', text: 'Where' }), el('th', { scope: 'col', text: 'Value' })),
    ),
    el(
      'tbody',
      {},
      ...summary.top
        .slice(0, SHOWN)
        .map(({ index, value }) =>
          el(
            'tr',
            {},
            el('td', { class: 'mono', text: known ? labelAt({ shape }, known.labels, index) : placeOf(index, shape) }),
            el('td', { class: 'number', text: number(value) }),
          ),
        ),
    ),
  );
}

const of = (name) => el('span', { class: 'unseen', text: ` of ${name}` });

function card(output) {
  const { name, summary, data } = output;
  const { min, max, mean, notFinite } = summary;
  const file = fileName(name);
  const known = labelsFor(inputs, output);
  return el(
    'article',
    { class: 'output', 'data-test': `output-${name}`, 'aria-label': `Output ${name}` },
    el('h4', {}, el('span', { class: 'mono', text: name }), ' ', el('span', { class: 'hint', text: typeOf(output) })),
    el(
      'p',
      { class: 'stats', 'data-test': 'stats', 'data-min': min, 'data-max': max, 'data-mean': mean },
      'min ',
      el('b', { text: number(min) }),
      ' max ',
      el('b', { text: number(max) }),
      ' mean ',
      el('b', { text: number(mean) }),
      notFinite ? ` · ${notFinite} not finite` : '',
    ),
    best(output, known),
    el(
      'div',
      { class: 'output-parts' },
      chartOf(output),
      data.length ? table(output, known) : el('p', { class: 'hint', text: 'No elements.' }),
    ),
    el(
      'div',
      { class: 'row' },
      el(
        'button',
        {
          type: 'button',
          class: 'quiet',
          'data-test': 'save-npy',
          onclick: () => save(`${file}.npy`, writeNpy(output), 'application/octet-stream'),
        },
        'Save .npy',
        of(name),
      ),
      el(
        'button',
        {
          type: 'button',
          class: 'quiet',
          'data-test': 'save-json',
          onclick: () => save(`${file}.json`, [jsonOf(output)], 'application/json'),
        },
        'Save JSON',
        of(name),
      ),
    ),
  );
}

export function showOutputs(outputs, given = inputs) {
  current = outputs;
  inputs = given;
  $('outputs').replaceChildren(...outputs.map(card));
}

export function clearOutputs() {
  current = [];
  $('outputs').replaceChildren(el('p', { class: 'hint', text: 'Not run yet.' }));
}

/** A file with one name per line, for the classes of any output with as many. */
export function watchLabels() {
  $('labels-file').addEventListener('change', async ({ target }) => {
    const [file] = target.files;
    if (!file) return;
    const n = takeLabels(file.name, await file.text());
    target.value = ''; // allows choosing the same file again
    const fits = current.some(({ shape }) => shape.at(-1) === n);
    $('labels-say').textContent = `${amount(n, 'name')}${current.length && !fits ? '; no output has so many elements in its last axis' : ''}`;
    if (current.length && givenLabels()) showOutputs(current);
  });
}
