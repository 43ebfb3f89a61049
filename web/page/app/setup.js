/** The open dimensions and the options of a plan, as fields; changes are planned at once. */
import { $, el, later } from './dom.js';
import { device } from './devices.js';
import { fault } from './fault.js';
import { typeOf } from './format.js';

/** Initial values of dimensions, by name: few networks take images of one pixel. */
const guesses = [
  [/height|width|^[hw]$/i, 224],
  [/seq|len|frames|time|tokens/i, 64],
  [/./, 1],
];
/** From the names only; the model may not accept them. */
export const usualDims = (names) =>
  Object.fromEntries(names.map((name) => [name, guesses.find(([pattern]) => pattern.test(name))[1]]));

let changed = () => {};
const markChanged = (yes) => document.documentElement.toggleAttribute('data-changed', yes);
const act = later(250, () => {
  markChanged(false);
  changed();
});
const soon = () => {
  markChanged(true);
  act();
};

export function watchSetup(onChange) {
  changed = onChange;
  $('setup').addEventListener('input', soon);
  $('setup').addEventListener('change', soon);
  $('setup').addEventListener('submit', (event) => {
    event.preventDefault();
    changed();
  });
}

/** Fields for the dimensions that the model leaves open. */
export function showDims(dims) {
  const fields = Object.entries(dims).map(([name, value]) => {
    return el(
      'label',
      {},
      el('span', { class: 'mono', text: name }),
      el('input', {
        type: 'number',
        min: 1,
        step: 1,
        value,
        required: true,
        inputmode: 'numeric',
        'data-test': `dim-${name}`,
        'data-dim': name,
      }),
    );
  });
  $('dims').replaceChildren(...fields);
  $('dims').hidden = fields.length === 0;
}

/** Sets some of them, which causes a new plan. */
export function setDims(values) {
  for (const field of $('dims').querySelectorAll('input')) {
    const value = values[field.dataset.dim];
    if (value === undefined || field.value === String(value)) continue;
    field.value = value;
    soon();
  }
}

/** The value in the field of a dimension; NaN if there is none. */
export const dimOf = (name) => Number($('dims').querySelector(`[data-dim="${name}"]`)?.value ?? NaN);

/** Fields for inputs whose elements determine shapes: without them there is no plan. */
export function showFixed(inputs) {
  $('fixed').replaceChildren(
    ...inputs.map((input) =>
      el(
        'label',
        {},
        el('span', { class: 'mono', text: `${input.name} : ${typeOf(input)}` }),
        el('input', {
          type: 'text',
          value: input.value ?? '',
          placeholder: '1, 64',
          autocomplete: 'off',
          spellcheck: 'false',
          'data-test': `fix-${input.name}`,
          'data-name': input.name,
          'data-type': input.type,
          'data-rank': input.shape.length,
        }),
      ),
    ),
  );
  $('fixed').hidden = inputs.length === 0;
}

/** The values of those fields, by name. Throws a message if a field is invalid. */
export function fixedInputs() {
  const fixed = {};
  for (const field of $('fixed').querySelectorAll('input')) {
    const { name, type, rank } = field.dataset;
    const words = field.value.split(/[\s,]+/).filter(Boolean);
    const good =
      words.length > 0 && words.every((word) => /^-?\d+$/.test(word)) && (rank !== '0' || words.length === 1);
    field.setAttribute('aria-invalid', String(!good));
    if (!good)
      throw fault(
        'INVALID',
        `shapes depend on the elements of input '${name}': write them as whole numbers with commas between them`,
      );
    fixed[name] = { type, shape: rank === '0' ? [] : [words.length], numbers: words.map(Number) };
  }
  return fixed;
}

/** Options of a plan from the fields. Throws a message if a field is invalid. */
export function planOptions() {
  const dims = {};
  for (const field of $('dims').querySelectorAll('input')) {
    const value = Number(field.value);
    const good = field.value !== '' && Number.isInteger(value) && value >= 1;
    field.setAttribute('aria-invalid', String(!good));
    if (!good) throw fault('INVALID', `the dimension '${field.dataset.dim}' must be a whole number of 1 or more`);
    dims[field.dataset.dim] = value;
  }
  const options = { device: device(), dims };
  if ($('budget').value) options.budget = Math.round(Number($('budget').value) * 1024);
  if ($('effort').value) options.effort = Math.round(Number($('effort').value));
  if ($('keep-inputs').checked) options.keepInputs = true;
  if ($('f16-weights').checked && options.device !== 'cpu') options.f16Weights = true;
  return options;
}
