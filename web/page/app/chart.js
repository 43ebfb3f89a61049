/**
 * Bytes over the length of the context: weights, keys and values, and the rest, stacked, with a line for the available
 * memory.
 */
import { bytes } from './format.js';
import { shortTokens } from './ctx_scale.js';

const SVG = 'http://www.w3.org/2000/svg';
const LEFT = 66, RIGHT = 14, TOP = 26, BOTTOM = 46; // pixels around the plot
const BETWEEN = 8; // interpolated points, because sizes grow linearly but the axis is not linear
const FARTHEST = 1.6; // the memory line may stretch the chart up to this multiple of the largest size

/** From bottom to top. */
export const layers = [
  { kind: 'weights', title: 'weights', of: (plan) => plan.weights_size },
  { kind: 'cache', title: 'keys and values', of: (plan) => plan.state_size },
  {
    kind: 'activations',
    title: 'activations and scratch',
    of: (plan) => plan.arena_size - plan.weights_size - plan.state_size,
  },
];

const el = (tag, attributes, ...children) => {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

/** A power of two that divides `most` into three to six steps. */
export function stepOf(most) {
  return 2 ** Math.ceil(Math.log2(Math.max(1, most) / 5));
}

/** Sizes at a length between planned ones, by linear interpolation. */
export function between(plans, ctx) {
  const after = plans.findIndex((plan) => plan.ctx >= ctx);
  if (after <= 0) return layers.map(({ of }) => of(plans.at(after)));
  const [a, b] = [plans[after - 1], plans[after]];
  const share = (ctx - a.ctx) / (b.ctx - a.ctx);
  return layers.map(({ of }) => of(a) + share * (of(b) - of(a)));
}

/** The end of the axis of bytes. */
export const topOf = (largest, budget) => (budget <= FARTHEST * largest ? Math.max(largest, budget) : largest) * 1.04;

function curves(scale, plans, x, y) {
  const places = plans.flatMap(({ ctx }, i) => {
    const next = plans[i + 1]?.ctx;
    if (next === undefined) return [ctx];
    return Array.from({ length: BETWEEN }, (_, k) => ctx * (next / ctx) ** (k / BETWEEN));
  });
  const sums = places.map((ctx) => {
    let sum = 0;
    return [0, ...between(plans, ctx).map((size) => (sum += size))];
  });
  return layers.map(({ kind }, layer) => {
    const upper = places.map((ctx, i) => `${x(ctx).toFixed(1)},${y(sums[i][layer + 1]).toFixed(1)}`);
    const lower = places.map((ctx, i) => `${x(ctx).toFixed(1)},${y(sums[i][layer]).toFixed(1)}`).reverse();
    return el('polygon', { class: `area ${kind}`, points: [...upper, ...lower].join(' ') });
  });
}

function axes(scale, top, width, height, x, y) {
  const parts = [];
  const step = stepOf(top);
  for (let size = 0; size <= top; size += step) {
    parts.push(el('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(size), y2: y(size) }));
    const label = el('text', { x: LEFT - 8, y: y(size) + 4, 'text-anchor': 'end' }, size === 0 ? '0' : bytes(size));
    parts.push(label);
  }
  const { points } = scale;
  const room = Math.max(1, Math.floor((width - LEFT - RIGHT) / 52)); // labels
  const every = Math.ceil(points.length / room);
  points.forEach((ctx, i) => {
    const isLast = i === points.length - 1;
    const isClose = !isLast && x(scale.most) - x(ctx) < 40;
    if (!isLast && ((points.length - 1 - i) % every !== 0 || isClose)) return;
    const anchor = isLast ? 'end' : i === 0 ? 'start' : 'middle';
    parts.push(el('text', { x: x(ctx), y: height - 28, 'text-anchor': anchor }, shortTokens(ctx)));
  });
  parts.push(el('text', { x: (LEFT + width - RIGHT) / 2, y: height - 9, 'text-anchor': 'middle' }, 'tokens of context'));
  return parts;
}

function budgetLine(budget, top, width, y) {
  if (!budget) return [];
  const isOutside = budget > top;
  const at = isOutside ? TOP - 8 : y(budget);
  const words = isOutside ? `your ${bytes(budget)} are far above ↑` : `your ${bytes(budget)}`;
  const label = el('text', { class: 'budget-text', x: LEFT + 6, y: at - 5 + (isOutside ? 5 : 0) }, words);
  return isOutside ? [label] : [el('line', { class: 'budget', x1: LEFT, x2: width - RIGHT, y1: at, y2: at }), label];
}

function cursor(ctx, plans, height, x, y) {
  const total = between(plans, ctx).reduce((sum, size) => sum + size, 0);
  return [
    el('line', { class: 'cursor', x1: x(ctx), x2: x(ctx), y1: TOP, y2: height - BOTTOM }),
    el('circle', { class: 'cursor-dot', cx: x(ctx), cy: y(total), r: 5 }),
  ];
}

/** Draws into `svg`. `plans`: by ascending ctx; `largest`: the bytes that the axis must include. */
export function drawChart(svg, { scale, plans, ctx, budget, largest, width, height }) {
  const top = topOf(largest, budget);
  const x = (n) => LEFT + scale.share(n) * (width - LEFT - RIGHT);
  const y = (size) => height - BOTTOM - (size / top) * (height - TOP - BOTTOM);
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.replaceChildren(
    ...axes(scale, top, width, height, x, y),
    ...curves(scale, plans, x, y),
    ...budgetLine(budget, top, width, y),
    ...cursor(ctx, plans, height, x, y),
  );
}

/** The position of a pointer on the axis of contexts, as a fraction, for a chart `width` pixels wide. */
export const shareAt = (pixel, width) => (pixel - LEFT) / (width - LEFT - RIGHT);
