/** The plan as it is shown: sizes, picture, what is pointed at, and the table. */
import { $, el } from './dom.js';
import { count, exactBytes, typeOf } from './format.js';
import { showBars } from './bars.js';
import { choosePicture, showPicture, watchPicture } from './picture.js';
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
      fact('Bytes', exactBytes(value.size)),
      fact('Offset', value.offset < 0 ? 'outside of the arena' : count(value.offset)),
      fact('Lives', `from step ${stepText(value.birth)} to before ${value.death}`),
      value.shares ? fact('In the place of', el('span', { class: 'mono', text: value.shares })) : null,
    ),
  );
}

/** Weights that were prepared for the kernels are values to the library; here they are weights, as states are. */
function groupOf({ kind, offset }, weights) {
  return kind === 'param' || kind === 'constant' || (offset >= 0 && offset < weights) ? 'weight' : kind;
}

/** The plan with groups for its values, and the first step that every run takes: those before prepare weights once. */
function prepare({ report, values, steps: all }) {
  const grouped = values.map((value) => ({
    ...value,
    name: value.kind === 'scratch' ? `${value.name}:scratch` : value.name, // the library gives it the name of its step
    group: groupOf(value, report.weights_size + report.state_size),
  }));
  const inArena = new Set(
    grouped.filter(({ group, offset }) => group !== 'weight' && offset >= 0).map(({ name }) => name),
  );
  const first = all.findIndex(({ name }) => inArena.has(name));
  return { report, values: grouped, steps: all, firstRunStep: Math.max(0, first) };
}

export function showPlan(given) {
  const plan = prepare(given);
  ({ steps } = plan);
  $('planned').hidden = false;
  showBars(plan.report);
  showTable(plan);
  showPicture(plan);
}

export function hidePlan() {
  $('planned').hidden = true;
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
