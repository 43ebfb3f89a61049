/** The display of a plan: sizes, picture, details under the pointer, and the table. */
import { $, el } from './dom.js';
import { count, exactBytes, typeOf } from './format.js';
import { showBars } from './bars.js';
import { choosePicture, showPicture, watchPicture } from './picture.js';
import { roleOf } from './roles.js';
import { markRow, showTable, watchTable } from './table.js';

let steps = [];

const fact = (title, ...content) => el('div', {}, el('dt', { text: title }), el('dd', {}, ...content));

function stepText(index) {
  const step = steps[index];
  return step ? `${index} (${step.op})` : String(index);
}

function showDetail(value) {
  markRow(value?.name ?? null);
  if (!value) {
    $('detail').replaceChildren(
      el('p', { class: 'hint', text: 'Nothing is chosen. Choose a buffer in the picture or a row of the table.' }),
    );
    return;
  }
  $('detail').replaceChildren(
    el(
      'p',
      { class: 'detail-name' },
      el('span', { class: `dot kind-${value.group}`, 'aria-hidden': 'true' }),
      el('b', { class: 'mono', text: value.name }),
      ` ${value.op && value.op !== value.kind ? `${value.kind}, made by ${value.op}` : value.kind}`,
    ),
    el(
      'dl',
      {},
      fact('Type', typeOf(value)),
      fact('Size', exactBytes(value.size)),
      fact('Begins at', value.offset < 0 ? 'outside of the block' : `byte ${count(value.offset)}`),
      fact('Lives', `from step ${stepText(value.birth)} until step ${value.death}`),
      value.shares ? fact('Shares its place with', el('span', { class: 'mono', text: value.shares })) : null,
    ),
  );
}

/**
 * Packed weights are values to the library; here they count as weights, like states. Values that end before the first
 * run were only needed to make them.
 */
function groupOf({ kind, op, offset, death }, weights, first) {
  if (kind === 'param' || kind === 'constant' || (offset >= 0 && offset < weights)) return 'weight';
  if (kind === 'input' || kind === 'output') return kind;
  if (death <= first) return 'preparation';
  return kind === 'value' ? roleOf(op) : kind;
}

/** The plan with a group for each value, and the first step of every run, after the prelude. */
export function prepare({ report, values, steps: all }) {
  const run = all.findIndex(({ once }) => !once);
  const firstRunStep = run < 0 ? all.length : run;
  const weights = report.weights_size + report.state_size;
  const grouped = values.map((value) => ({
    ...value,
    name: value.kind === 'scratch' ? `${value.name}:scratch` : value.name, // the library names it after its step
    group: groupOf(value, weights, firstRunStep),
  }));
  return { report, values: grouped, steps: all, firstRunStep };
}

/** Displays of a plan, here and in other sections, are visible only if there is one (play.css). */
const markPlan = (isThere) => document.documentElement.toggleAttribute('data-no-plan', !isThere);

export function showPlan(given) {
  const plan = prepare(given);
  markPlan(true);
  ({ steps } = plan);
  $('planned').hidden = false;
  showBars(plan.report);
  showTable(plan);
  showPicture(plan);
}

export function hidePlan() {
  $('planned').hidden = true;
  markPlan(false);
}

export function watchPlan() {
  watchTable((name) => {
    choosePicture(name);
    $('picture').scrollIntoView({
      block: 'nearest',
      behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth',
    });
  });
  watchPicture(showDetail);
}
