/** The times of runs, and what they did not do. */
import { $, el } from './dom.js';
import { amount, bytes, count, median, milliseconds } from './format.js';

const parts = [
  ['write', 'Writing inputs'],
  ['run', 'Running'],
  ['read', 'Reading outputs'],
  ['total', 'All of it'],
];
const BINS = 40;
const FEW = 30; // runs: one bar each
const PAST = 3; // earlier measurements shown

const ends = (low, high) =>
  el('p', { class: 'hint ends' }, el('span', { text: milliseconds(low) }), el('span', { text: milliseconds(high) }));

const slot = (share) => {
  const bar = el('span', {});
  bar.style.height = `${100 * share}%`;
  return el('span', { class: 'slot' }, bar);
};

/** Few runs: one bar each, in order. */
function each(times) {
  const high = Math.max(...times);
  return el(
    'div',
    { 'data-test': 'runs-each' },
    el(
      'div',
      {
        class: 'chart small few',
        role: 'img',
        'aria-label': `${amount(times.length, 'run')}: ${times.map(milliseconds).join(', ')}`,
      },
      ...times.map((time) => slot(time / (high || 1))),
    ),
    el('p', { class: 'hint', text: `each run, from 0 to ${milliseconds(high)}` }),
  );
}

/** Many runs: a histogram between the fastest and the slowest; the number of bins grows with their square root. */
function spread(times) {
  const low = Math.min(...times),
    high = Math.max(...times);
  const bins = new Array(Math.min(BINS, Math.ceil(Math.sqrt(times.length)))).fill(0);
  for (const time of times)
    bins[Math.min(bins.length - 1, Math.floor(((time - low) / (high - low || 1)) * bins.length))]++;
  const most = Math.max(...bins);
  return el(
    'div',
    { 'data-test': 'runs-spread' },
    el(
      'div',
      {
        class: 'chart small',
        role: 'img',
        'aria-label': `${amount(times.length, 'run')} from ${milliseconds(low)} to ${milliseconds(high)}`,
      },
      ...bins.map((n) => slot(n / most)),
    ),
    ends(low, high),
  );
}

const fact = (title, value, test, data = {}) =>
  el('div', {}, el('dt', { text: title }), el('dd', { 'data-test': test, ...data, text: value }));

const history = []; // earlier measurements, newest first

function earlier() {
  const past = history.slice(1, 1 + PAST);
  if (past.length === 0) return '';
  return el('p', { class: 'hint', 'data-test': 'earlier', text: `Before: ${past.join(', ')}` });
}

export function showTimings({ timings, counters, memory }, device, made) {
  const n = timings.run.length;
  history.unshift(`${milliseconds(median(timings.run))} on ${device}`);
  history.length = Math.min(history.length, 1 + PAST);
  $('timings').replaceChildren(
    el(
      'p',
      { class: 'figure' },
      el('span', { class: 'big', text: milliseconds(median(timings.run)) }),
      el('span', { class: 'hint', text: n > 1 ? ` median of ${count(n)} runs on ${device}` : ` one run on ${device}` }),
    ),
    el(
      'dl',
      { class: 'facts' },
      ...parts.map(([key, title]) =>
        fact(title, milliseconds(median(timings[key])), `time-${key}`, { 'data-ms': median(timings[key]) }),
      ),
      fact('Making the session', milliseconds(made), 'time-session', { 'data-ms': made }),
      fact('Allocations in runs', count(counters.allocations), 'allocations'),
      device === 'cpu' ? null : fact('GPU objects', count(counters.gpuObjects), 'gpu-objects'),
      fact('Memory of the program', `${bytes(memory.used)} of ${bytes(memory.total)}`, 'memory', {
        'data-total': memory.total,
        'data-used': memory.used,
      }),
    ),
    n > FEW ? spread(timings.run) : n > 1 ? each(timings.run) : '',
    earlier(),
  );
}

export function clearTimings() {
  history.length = 0;
  $('timings').replaceChildren(el('p', { class: 'hint', text: 'Not run yet.' }));
}
