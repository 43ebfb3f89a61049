/** The cost of less memory, in words. Pure functions. */
import { amount, percent } from './format.js';

/** Operations of one run, without the prelude. */
export const workOf = ({ steps }) => steps.reduce((sum, { once, flops }) => sum + (once ? 0 : flops), 0);

/** Bytes in addition to what is always alive. */
export const restOf = ({ report }) => report.arena_size - report.weights_size - report.state_size;

/**
 * A plan with a budget compared with one without: fractions of memory saved and work added, slices, nodes that run
 * twice.
 */
export function priceOf(full, plan) {
  const [before, after] = [workOf(full), workOf(plan)];
  return {
    less: 1 - restOf(plan) / Math.max(1, restOf(full)),
    slices: plan.report.n_slices,
    twice: plan.report.n_recomputed,
    work: before > 0 ? after / before - 1 : 0,
  };
}

const some = (n, one, many) => (n === 0 ? [] : [amount(n, one, many)]);

/** "76 % less memory, 12 slices, 4 % more work" */
export function priceWords({ less, slices, twice, work }) {
  if (less < 0.0005) return 'All that the plan asks for. Drag to the left to give it less, and see the price.';
  const words = [`${percent(less)} less memory beside the weights`, ...some(slices, 'slice', 'slices')];
  words.push(...some(twice, 'node runs twice', 'nodes run twice'));
  if (work >= 0.0005) words.push(`${percent(work)} more work`);
  else words.push(slices + twice === 0 ? 'another order, no more work' : 'no more work');
  return words.join(', ');
}

/** The size of the smallest plan, from the library's message about a budget that is too small; NaN if it names none. */
export const smallestIn = (message) => Number(/smallest plan found needs (\d+)/.exec(message)?.[1] ?? NaN);
