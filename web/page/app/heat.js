/** Small pictures of an output: bars for a short row, a heat map for two axes or more. */
import { el } from './dom.js';
import { amount, number } from './format.js';
import { reader } from '../common/types.js';

const FEW = 64; // few enough to distinguish each
const MOST_BARS = 200;
const LARGEST = 512; // largest side of a map in pixels
const THIN = 16; // largest ratio of a map's sides

/** From deep water to sand to signal red, by three points per channel. */
function heatColour(share) {
  const stops = [
    [18, 48, 63],
    [58, 134, 140],
    [240, 217, 168],
    [208, 84, 54],
  ];
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low].map((channel, i) => channel + (stops[low + 1][i] - channel) * (at - low));
}

/** All shades as pixels: a map may have a quarter of a million of them, and must not block the page. */
const colours = Uint32Array.from({ length: 256 }, (_, i) => {
  const [r, g, b] = heatColour(i / 255).map(Math.round);
  return new Uint32Array(Uint8Array.of(r, g, b, 255).buffer)[0];
});

/** At most MOST_BARS numbers: if there are more, each stands for several, by the one farthest from 0. */
function thin({ type, data }) {
  const read = reader(type);
  const each = Math.ceil(data.length / MOST_BARS);
  const numbers = [];
  for (let i = 0; i < data.length; i++) {
    const value = read(data[i]);
    if (i % each === 0) numbers.push(value);
    else if (Math.abs(value) > Math.abs(numbers[numbers.length - 1])) numbers[numbers.length - 1] = value;
  }
  return numbers;
}

function bars(output) {
  const {
    data,
    summary: { min, max },
  } = output;
  const bottom = Math.min(min, 0),
    span = Math.max(max, 0) - bottom || 1;
  const chart = el('div', {
    class: data.length > FEW ? 'chart dense' : 'chart',
    role: 'img',
    'aria-label': `Bars of ${amount(data.length, 'number')} from ${number(min)} to ${number(max)}`,
  });
  for (const value of thin(output)) {
    const bar = el('span', { title: number(value), class: value < 0 ? 'minus' : undefined });
    bar.style.height = `${(100 * Math.abs(value || 0)) / span}%`;
    bar.style.bottom = `${(100 * (Math.min(value || 0, 0) - bottom)) / span}%`;
    chart.append(el('span', { class: 'slot' }, bar));
  }
  return chart;
}

/** The matrix shown, from its first element on: all of it, or the visible part of a thin one. */
function partOf(shape) {
  const height = shape[shape.length - 2],
    width = shape[shape.length - 1];
  return { height: Math.min(height, THIN * width), width: Math.min(width, THIN * height), stride: width };
}

function map({ type, shape, data, summary: { min, max } }) {
  const { height, width, stride } = partOf(shape);
  const down = Math.min(height, LARGEST),
    across = Math.min(width, LARGEST);
  const canvas = el('canvas', {
    class: 'heat',
    width: across,
    height: down,
    role: 'img',
    'aria-label': `Heat map of the first ${height} by ${width} numbers, ${number(min)} dark to ${number(max)} red`,
  });
  canvas.style.aspectRatio = `${width} / ${height}`;
  canvas.style.width = `min(100%, 18rem, ${(16 * width) / height}rem)`;
  const context = canvas.getContext('2d');
  const image = context.createImageData(across, down);
  const pixels = new Uint32Array(image.data.buffer);
  const read = reader(type);
  const scale = (colours.length - 1) / (max - min || 1);
  for (let i = 0; i < across * down; i++) {
    const y = Math.floor((Math.floor(i / across) * height) / down),
      x = Math.floor(((i % across) * width) / across);
    const shade = Math.round((read(data[y * stride + x]) - min) * scale);
    pixels[i] = colours[Math.min(Math.max(shade || 0, 0), colours.length - 1)];
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** A suitable chart for an output, or null. */
export function chartOf(output) {
  const { shape, data, summary } = output;
  if (summary.min === null || data.length < 2) return null;
  const rows = shape.slice(-2);
  const flat = rows.length < 2 || Math.min(...rows) === 1;
  if (flat || (data.length <= FEW && Math.min(...rows) <= 2)) return bars(output);
  return map(output);
}
