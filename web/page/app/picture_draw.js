/** Paints a plan: one rectangle per buffer, axes, and the lower bound. Independent of pointers and keys. */
import { colour } from './dom.js';
import { bytes, roundBytes } from './format.js';
import { roles } from './roles.js';

export const margin = { left: 62, right: 10, top: 10, bottom: 26 };

const FONT = '11px system-ui, sans-serif';
const LINE = 14; // height of a label in pixels
const SHORTEST = 4; // shortest part of a name worth showing

function paintColours() {
  const fills = {};
  for (const group of Object.keys(roles)) fills[group] = colour(`--kind-${group}`);
  return {
    fills,
    line: colour('--line'),
    ink: colour('--ink'),
    soft: colour('--ink-soft'),
    paper: colour('--paper'),
    onKind: colour('--on-kind'),
    mark: colour('--mark'),
  };
}

/** Converts coordinates in the plan to the canvas. */
export function placing(view, width, height) {
  const across = (width - margin.left - margin.right) / (view.x1 - view.x0);
  const up = (height - margin.top - margin.bottom) / (view.y1 - view.y0);
  const x = (step) => margin.left + (step - view.x0) * across;
  const y = (offset) => height - margin.bottom - (offset - view.y0) * up;
  return { x, y, box: (b) => [x(b.birth), y(b.offset + b.size), (b.death - b.birth) * across, b.size * up] };
}

function roundStep(span, most) {
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
}

function paintAxes(context, view, place, width, height, colours, floor) {
  context.font = FONT;
  context.fillStyle = colours.soft;
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  const tick = roundBytes(view.y1 - view.y0, Math.max(2, height / 60));
  for (let n = Math.ceil((view.y0 - floor) / tick); n * tick + floor <= view.y1; n++) {
    const y = Math.round(place.y(n * tick + floor)) + 0.5;
    context.beginPath();
    context.moveTo(margin.left, y);
    context.lineTo(width - margin.right, y);
    context.stroke();
    context.fillText(bytes(n * tick), margin.left - 7, y);
  }
  context.textAlign = 'center';
  context.textBaseline = 'top';
  const step = Math.max(1, roundStep(view.x1 - view.x0, Math.max(2, width / 90)));
  for (let n = Math.ceil(view.x0 / step) * step; n <= view.x1; n += step) {
    const x = place.x(n);
    if (x > width - margin.right - 12) break;
    context.fillText(n === 0 ? 'step 0' : String(n), Math.max(x, margin.left + 8), height - margin.bottom + 8);
  }
}

/** As much of a name as fits, without suffixes of rewriting; '' if too little fits. */
function shorten(context, name, room) {
  const text = name.replace(/#.*$/, '');
  if (context.measureText(text).width <= room) return text;
  for (let n = Math.min(text.length - 1, Math.floor(room / 4)); n >= SHORTEST; n--) {
    const part = `${text.slice(0, n)}…`;
    if (context.measureText(part).width <= room) return part;
  }
  return '';
}

/** Labels, the largest buffers' first; overlapping ones are left out. */
function paintLabels(context, shown, place, width, colours) {
  const taken = [];
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  context.fillStyle = colours.onKind;
  for (const { buffer, box } of [...shown].sort((a, b) => b.buffer.size - a.buffer.size)) {
    const [x, y, , h] = box;
    const left = Math.max(x, margin.left) + (buffer.shares === '' ? 5 : 7);
    const top = Math.max(y, margin.top);
    const room = Math.min(place.x(buffer.labelEnd), width - margin.right) - left - 3;
    const height = y + h - top;
    if (room < 24 || height < LINE) continue;
    const text = shorten(context, buffer.name, room);
    const middle = top + Math.min(height / 2, LINE - 1);
    const own = [left, middle - LINE / 2, left + context.measureText(text).width, middle + LINE / 2];
    if (text === '' || taken.some((other) => touch(own, other))) continue;
    taken.push(own);
    context.fillText(text, left, middle);
  }
}

const touch = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

function paintBuffer(context, buffer, [x, y, w, h], colours) {
  const shared = buffer.shares !== '';
  const gap = w > 3 && h > 3 ? 0.75 : 0;
  context.globalAlpha = shared ? 0.82 : 1;
  context.fillStyle = colours.fills[buffer.group];
  context.fillRect(x + gap, y + gap, Math.max(w - 2 * gap, 0.7), Math.max(h - 2 * gap, 0.7));
  context.globalAlpha = 1;
  if (!shared || w <= 6 || h <= 6) return;
  // a stripe on the side where it overwrote the slot
  context.fillStyle = colours.paper;
  context.globalAlpha = 0.55;
  context.fillRect(x + 2, y + 2, 1.5, h - 4);
  context.globalAlpha = 1;
}

const isSeen = (buffer, view) =>
  buffer.death > view.x0 &&
  buffer.birth < view.x1 &&
  buffer.offset < view.y1 &&
  buffer.offset + buffer.size > view.y0;

function paintBuffers(context, buffers, view, place, width, colours) {
  const shown = buffers.filter((buffer) => isSeen(buffer, view)).map((buffer) => ({ buffer, box: place.box(buffer) }));
  for (const { buffer, box } of shown) paintBuffer(context, buffer, box, colours);
  paintLabels(context, shown, place, width, colours);
}

function paintBound(context, level, place, width, colours) {
  const y = Math.round(place.y(level)) + 0.5;
  if (y < margin.top - 1) return;
  context.setLineDash([5, 4]);
  context.strokeStyle = colours.mark;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(margin.left, y);
  context.lineTo(width - margin.right, y);
  context.stroke();
  context.setLineDash([]);
}

function outline(context, buffer, place, colour, width) {
  const [x, y, w, h] = place.box(buffer);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.strokeRect(x, y, Math.max(w, 2), Math.max(h, 2));
}

/** `scene`: buffers, view, floor (start of the scale of bytes), bound, pointed, chosen. */
export function paint(context, width, height, scene) {
  const { view, buffers, floor, bound, pointed, chosen } = scene;
  const colours = paintColours();
  const place = placing(view, width, height);
  context.clearRect(0, 0, width, height);
  paintAxes(context, view, place, width, height, colours, floor);
  context.save();
  context.beginPath();
  context.rect(
    margin.left,
    margin.top - 2,
    width - margin.left - margin.right,
    height - margin.top - margin.bottom + 2,
  );
  context.clip();
  context.font = FONT;
  paintBuffers(context, buffers, view, place, width, colours);
  paintBound(context, floor + bound, place, width, colours);
  if (chosen) outline(context, chosen, place, colours.paper, 5);
  if (chosen) outline(context, chosen, place, colours.ink, 2.5);
  if (pointed && pointed !== chosen) outline(context, pointed, place, colours.ink, 1.5);
  context.restore();
}
