/** A small view of a tensor: its picture, and its range. */
import { el } from './dom.js';
import { amount, number } from './format.js';
import { chartOf } from './heat.js';
import { summarise } from '../worker/summary.js';
import { countOf } from '../common/types.js';

/** `tensor`: type, shape, and the first of its elements. */
export function tensorView({ name, type, shape, data }) {
  const summary = summarise(type, data);
  const isWhole = data.length === countOf(shape);
  const words = `${number(summary.min)} to ${number(summary.max)}${isWhole ? '' : `, the first ${amount(data.length, 'element')}`}`;
  return el(
    'figure',
    { class: 'tensor', 'data-test': 'tensor', 'data-name': name },
    chartOf({ type, shape, data, summary }) ?? '',
    el('figcaption', { class: 'hint', text: words }),
  );
}
