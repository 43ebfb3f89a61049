/** The arena against what it would be without sharing, and against what no packing can beat. */
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
  if (saved > 0.0005) words.push(`${percent(saved)} less than without sharing`);
  if (report.optimal) words.push('no packing of these buffers is smaller: proven');
  else words.push(`activations within ${percent(activations / Math.max(1, bound) - 1)} of the lower bound`);
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
    ...row('bar-unshared', 'Without sharing', unshared, [['unshared', unshared]], whole),
    ...row(
      'bar-arena',
      'The arena',
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
      'Lower bound',
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
    chip('scratch', 'scratch adds', scratch),
  );
}
