/** The memory slider: the budget of a plan, with its price. */
import { $, el } from './dom.js';
import { bytes, exactBytes } from './format.js';
import { priceOf, priceWords, smallestIn } from './price.js';

const STEPS = 1000;
const KIB = 1024;
const PATIENCE = 3; // consecutive refused budgets

let full = null; // { key, plan }: the plan without a budget
let floor = 0; // bytes: the smallest found
let isOurs = false; // the slider has set the budget
let refused = 0;
let replan = () => {};

const slider = () => $('budget-slider');
const lowest = ({ report }) => Math.max(floor, report.weights_size + report.state_size);

const budgetAt = (share) => {
  const { report } = full.plan;
  const low = lowest(full.plan);
  return low + share * (report.arena_size - low);
};

const shareOf = (size) => {
  const { report } = full.plan;
  const low = lowest(full.plan);
  return report.arena_size > low ? Math.min(1, Math.max(0, (size - low) / (report.arena_size - low))) : 1;
};

function setBudget(size) {
  isOurs = size !== null;
  $('budget').value = size === null ? '' : Math.ceil(size / KIB);
}

function drag() {
  if (!full) return;
  const share = Number(slider().value) / STEPS;
  setBudget(share === 1 ? null : budgetAt(share));
  refused = 0;
  replan();
}

let first = 0; // budget in bytes requested by a link

/** Sets the budget of the model that is opened next. */
export function startBudget(size = 0) {
  first = size;
}

/** The plan without a budget. */
export const fullPlan = () => full.plan;

/** For another model the previous budget is dropped. */
export function forgetBudget() {
  if (first) {
    setBudget(first);
    isOurs = false;
    first = 0;
  } else if (isOurs) setBudget(null);
  full = null;
  floor = 0;
}

/**
 * Called after every plan: `options` are those that it was made with. `planWithout` returns a promise of the plan
 * without a budget, if it is not known yet.
 */
export async function showBudget(plan, { fixed, options: { budget, ...options } }, planWithout) {
  const key = JSON.stringify([fixed, options]);
  if (!budget) full = { key, plan };
  if (full?.key !== key) {
    full = { key, plan: await planWithout() };
    floor = 0;
  }
  if (!budget) refused = 0;
  const { arena_size: arena, weights_size: weights, state_size: state } = plan.report;
  const price = priceOf(full.plan, plan);
  Object.assign($('budgeter').dataset, { arena, less: price.less, slices: price.slices, work: price.work });
  if (document.activeElement !== slider() || !isOurs) slider().value = Math.round(STEPS * shareOf(arena));
  slider().setAttribute('aria-valuetext', `${bytes(arena)}: ${priceWords(price)}`);
  $('budget-size').textContent = bytes(arena);
  $('budget-size').title = exactBytes(arena);
  $('budget-ends').replaceChildren(
    el('span', { text: floor ? `smallest found: ${bytes(floor)}` : `weights alone: ${bytes(weights + state)}` }),
    el('span', { text: `no limit: ${bytes(full.plan.report.arena_size)}` }),
  );
  const isLeast = floor >= full.plan.report.arena_size;
  $('budget-price').textContent = isLeast ? 'No smaller plan was found: this is the least that it takes.' : priceWords(price);
}

/**
 * Whether a plan failed because the slider's budget was too small: then the slider moves to the smallest possible one.
 */
export function isRefusedBudget(error) {
  const smallest = error.status === 'INFEASIBLE' && isOurs ? smallestIn(error.message) : NaN;
  if (!Number.isFinite(smallest) || ++refused > PATIENCE) return false;
  floor = smallest;
  setBudget(smallest);
  return true;
}

export function watchBudget(onChange) {
  replan = onChange;
  $('budgeter').replaceChildren(
    el(
      'label',
      { class: 'budget-label', for: 'budget-slider' },
      'Memory that it may take ',
      el('output', { id: 'budget-size', class: 'budget-size', for: 'budget-slider' }),
    ),
    el('input', { id: 'budget-slider', 'data-test': 'budget-slider', type: 'range', min: 0, max: STEPS, step: 1, value: STEPS }),
    el('p', { id: 'budget-ends', class: 'hint ends' }),
    el('p', { id: 'budget-price', class: 'price', 'data-test': 'budget-price', 'aria-live': 'polite' }),
  );
  slider().addEventListener('input', drag);
  $('budget').addEventListener('input', () => {
    isOurs = false;
  });
}
