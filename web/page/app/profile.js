/** Time per op: profiled runs, summed up by op, and the slowest steps by name. */
import { $, el } from './dom.js';
import { count, median, milliseconds, percent } from './format.js';
import { clearAlert, showAlert } from './alerts.js';
import { traceOnce } from './run.js';

const RUNS = 5; // runs, for the median of each step
const SLOWEST = 8;

/**
 * `steps` of a plan and the times of several runs: { total, ops: [{ op, n, ms }], slowest: [{ name, op, ms }] }. Pure.
 */
export function profileOf(steps, runs) {
  const timed = steps
    .map(({ op, name, out }, i) => ({ op, name: out?.[0] ?? name, times: runs.map((run) => run[i]) }))
    .filter(({ times }) => times.every((ms) => ms !== null))
    .map(({ op, name, times }) => ({ op, name, ms: median(times) }));
  const ops = new Map();
  for (const { op, ms } of timed) {
    const row = ops.get(op) ?? { op, n: 0, ms: 0 };
    ops.set(op, { op, n: row.n + 1, ms: row.ms + ms });
  }
  const slower = (a, b) => b.ms - a.ms;
  return {
    total: timed.reduce((sum, { ms }) => sum + ms, 0),
    ops: [...ops.values()].sort(slower),
    slowest: [...timed].sort(slower).slice(0, SLOWEST),
  };
}

function bar(share) {
  const fill = el('span', { class: 'fill' });
  fill.style.transform = `scaleX(${share})`;
  return el('span', { class: 'track', 'aria-hidden': 'true' }, fill);
}

const head = (...titles) =>
  el('thead', {}, el('tr', {}, ...titles.map(([text, number]) => el('th', { scope: 'col', class: number && 'number', text }))));

function table(caption, titles, rows) {
  return el('table', { class: 'profile-table' }, el('caption', { text: caption }), head(...titles), el('tbody', {}, ...rows));
}

const row = (first, cells, ms, total, data) =>
  el(
    'tr',
    data,
    el('th', { scope: 'row', class: 'mono', text: first }),
    ...cells,
    el('td', { class: 'number', text: milliseconds(ms) }),
    el('td', { class: 'portion' }, bar(ms / total), el('span', { text: percent(ms / total) })),
  );

function show({ total, ops, slowest }, device) {
  const whole = total || 1;
  const number = (text) => el('td', { class: 'number', text });
  $('profile').replaceChildren(
    el('p', { class: 'hint', text: `Each step looked at by itself, on ${device}; medians of ${RUNS} runs, ${milliseconds(total)} together.` }),
    el(
      'div',
      { class: 'scroll', role: 'region', 'aria-label': 'Time per op', tabindex: 0 },
      table(
        'By op',
        [['Op'], ['Steps', true], ['Time', true], ['Share']],
        ops.map(({ op, n, ms }) => row(op, [number(count(n))], ms, whole, { 'data-op': op, 'data-ms': ms, 'data-n': n })),
      ),
      table(
        'Slowest steps',
        [['Makes'], ['Op'], ['Time', true], ['Share']],
        slowest.map(({ name, op, ms }) => row(name.replace(/#.*$/, ''), [el('td', { text: op })], ms, whole, {})),
      ),
    ),
  );
  $('profile').dataset.total = total;
}

export function clearProfile() {
  $('profile').replaceChildren();
  delete $('profile').dataset.total;
}

/** `stepsOf()` returns the steps of the plan shown. */
export function watchProfile(stepsOf) {
  let going = false;
  $('profile-go').addEventListener('click', async () => {
    if (going) return;
    going = true;
    $('profile-go').setAttribute('aria-disabled', 'true');
    clearAlert('run');
    try {
      const runs = [];
      let device = '';
      for (let i = 0; i < RUNS; i++) {
        const trace = await traceOnce(0);
        runs.push(trace.steps);
        ({ device } = trace);
      }
      show(profileOf(stepsOf(), runs), device);
    } catch (error) {
      showAlert('run', error);
    } finally {
      going = false;
      $('profile-go').removeAttribute('aria-disabled');
    }
  });
}
