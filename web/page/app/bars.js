/** The size of the block compared with that without sharing, and with the lower bound of any packing. */
import { $, el } from './dom.js';
import { bytes, exactBytes, percent } from './format.js';

function part(kind, size, whole) {
  const element = el('span', { class: `part ${kind}` });
  element.style.width = `${(100 * size) / whole}%`;
  return element;
}

function row(name, title, size, parts, whole) {
  return [
    el('dt', { text: title }),
    el(
      'dd',
      { 'data-test': name, 'data-bytes': size },
      el('span', { class: 'bar', 'aria-hidden': 'true' }, ...parts.map(([kind, n]) => part(kind, n, whole))),
      el('span', { class: 'size', text: bytes(size), title: exactBytes(size) }),
    ),
  ];
}

const chip = (kind, title, size) =>
  el(
    'li',
    { 'data-test': `bar-${kind}`, 'data-bytes': size },
    el('span', { class: `dot ${kind}`, 'aria-hidden': 'true' }),
    `${title} `,
    el('b', { text: bytes(size), title: exactBytes(size) }),
  );

function verdict(report) {
  const { activations_size: activations, activations_lower_bound: bound } = report;
  const saved = 1 - report.arena_size / report.total_unshared;
  const words = [];
  const above = activations / Math.max(1, bound) - 1;
  if (saved > 0.0005) words.push(`${percent(saved)} less than if every tensor had its own memory`);
  if (report.optimal || above <= 0) words.push('no plan for these steps is smaller, and that is proven');
  else if (above < 0.0005) words.push('as good as the smallest possible');
  else words.push(`at most ${percent(above)} above the smallest possible`);
  return words.join('; ');
}

export function showBars(report) {
  const {
    arena_size: arena,
    total_unshared: unshared,
    weights_size: weights,
    state_size: state,
    activations_size: activations,
    scratch_size: scratch,
    activations_lower_bound: bound,
  } = report;
  const whole = Math.max(arena, unshared);
  $('arena').textContent = bytes(arena);
  $('arena').dataset.bytes = arena;
  $('arena').title = exactBytes(arena);
  $('plan-verdict').textContent = verdict(report);
  $('bars').replaceChildren(
    ...row('bar-unshared', 'Each its own', unshared, [['unshared', unshared]], whole),
    ...row(
      'bar-arena',
      'One shared block',
      arena,
      [
        ['weights', weights],
        ['cache', state],
        ['activations', activations],
        ['scratch', scratch],
      ],
      whole,
    ),
    ...row(
      'bar-bound',
      'Least possible',
      weights + state + bound,
      [
        ['weights', weights],
        ['cache', state],
        ['bound', bound],
      ],
      whole,
    ),
  );
  $('chips').replaceChildren(
    chip('weights', 'weights', weights),
    ...(state > 0 ? [chip('cache', 'state', state)] : []),
    chip('activations', 'activations', activations),
    chip('scratch', 'working space', scratch),
  );
}
