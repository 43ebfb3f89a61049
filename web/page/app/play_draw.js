/** Paints the animation: the block as a quay with its current buffers, and bytes over time below it. */
import { colour } from './dom.js';
import { bytes, roundBytes } from './format.js';
import { roles } from './roles.js';
import { fleet } from './play_frames.js';

const FONT = '12px system-ui, sans-serif';
const EDGE = 14;
const QUAY = 22; // height in pixels of the ruler below the ships
const PART = 0.56; // fraction of the height for the harbour, the rest is the chart

const named = { line: '--line', ink: '--ink', soft: '--ink-soft', mark: '--mark', onKind: '--on-kind', paper: '--paper' };

/** The theme's current colours. */
export function harbourColours() {
  const fills = Object.fromEntries(Object.keys(roles).map((group) => [group, colour(`--kind-${group}`)]));
  const rest = Object.fromEntries(Object.entries(named).map(([key, name]) => [key, colour(name)]));
  return { fills, unshared: colour('--kind-unshared'), ...rest };
}

/** The layout: `x` of a byte, the ships' top and height, and the chart's box. */
export function placesOf(width, height, scene) {
  const wide = width - 2 * EDGE;
  const quay = Math.round(height * PART);
  const tall = Math.min(84, quay - 40);
  return {
    x: (offset) => EDGE + (offset / scene.span) * wide,
    quay,
    top: quay - tall,
    tall,
    chart: { left: EDGE, right: width - EDGE, top: quay + QUAY + 26, bottom: height - 10 },
  };
}

const ease = (share) => 1 - (1 - share) ** 3;

function hull(context, x, y, width, height) {
  const cut = Math.min(7, width / 3, height / 3);
  context.beginPath();
  context.moveTo(x, y + cut);
  context.lineTo(x + cut, y);
  context.lineTo(x + width - cut, y);
  context.lineTo(x + width, y + cut);
  context.lineTo(x + width, y + height);
  context.lineTo(x, y + height);
  context.closePath();
}

/** As much of the name's end as fits: beginnings are mostly the same. Suffixes of rewriting (#last) are left out. */
function label(name, room) {
  const most = Math.floor(room / 6.4);
  const text = name.replace(/#.*$/, '') || name;
  if (most < 3) return '';
  return text.length <= most ? text : `…${text.slice(1 - most)}`;
}

function paintShip(context, ship, places, colours, chosen) {
  const { buffer } = ship;
  const x = places.x(buffer.offset) + 0.5,
    width = Math.max(1.5, places.x(buffer.offset + buffer.size) - x - 0.5);
  const away = ship.out > 0 ? ease(ship.out) : 1 - ease(ship.in);
  const y = places.top - away * (places.tall * 0.9);
  context.globalAlpha = 1 - away;
  hull(context, x, y, width, places.tall);
  context.fillStyle = colours.fills[buffer.group] ?? colours.fills.value;
  context.fill();
  if (buffer === chosen) {
    context.strokeStyle = colours.ink;
    context.lineWidth = 2.5;
    context.stroke();
  }
  context.fillStyle = colours.onKind;
  context.textAlign = 'left';
  context.textBaseline = 'top';
  const name = label(buffer.name, width - 10);
  if (name) context.fillText(name, x + 6, y + 10);
  if (width > 64) context.fillText(bytes(buffer.size), x + 6, y + 28);
  context.globalAlpha = 1;
}

function paintQuay(context, places, width, scene, colours) {
  context.fillStyle = colours.soft;
  context.fillRect(EDGE, places.quay, width - 2 * EDGE, 3);
  context.textBaseline = 'top';
  const tick = roundBytes(scene.span, Math.max(2, width / 110));
  for (let at = 0; at <= scene.span; at += tick) {
    const x = places.x(at);
    context.fillRect(Math.min(x, width - EDGE - 1), places.quay + 3, 1, 5);
    context.textAlign = at === 0 ? 'left' : x > width - EDGE - 26 ? 'right' : 'center';
    context.fillText(bytes(at), x, places.quay + 10);
  }
}

function paintChart(context, places, scene, at, colours) {
  const { left, right, top, bottom } = places.chart;
  const { frames, grown } = scene;
  const x = (i) => left + ((right - left) * i) / frames.length;
  const y = (n) => bottom - ((bottom - top) * n) / Math.max(1, grown);
  const steps = (of, until) => {
    context.beginPath();
    context.moveTo(left, bottom);
    for (let i = 0; i < until; i++) {
      context.lineTo(x(i), y(of(frames[i])));
      context.lineTo(x(Math.min(i + 1, until)), y(of(frames[i])));
    }
    context.lineTo(x(until), bottom);
    context.closePath();
  };
  const now = Math.min(frames.length, Math.floor(at) + 1);
  context.fillStyle = colours.unshared;
  context.globalAlpha = 0.3;
  steps(({ grown: n }) => n, frames.length);
  context.fill();
  context.globalAlpha = 1;
  steps(({ grown: n }) => n, now);
  context.fill();
  context.fillStyle = colours.fills.product;
  steps(({ bytes: n }) => n, now);
  context.fill();
  context.fillStyle = colours.line;
  context.fillRect(left, bottom, right - left, 1);
  context.strokeStyle = colours.mark;
  context.lineWidth = 1.5;
  const cursor = x(Math.min(at, frames.length));
  context.beginPath();
  context.moveTo(cursor, top - 4);
  context.lineTo(cursor, bottom);
  context.stroke();
}

/** Titles of the two curves, above the chart. */
function paintKey(context, places, scene, frame, colours) {
  const y = places.chart.top - 18;
  context.textAlign = 'left';
  context.textBaseline = 'top';
  const entries = [
    [colours.fills.product, `alive now ${bytes(frame.bytes)}`],
    [colours.unshared, `without sharing ${bytes(frame.grown)}`],
  ];
  let x = EDGE;
  for (const [fill, text] of entries) {
    context.fillStyle = fill;
    context.fillRect(x, y + 2, 9, 9);
    context.fillStyle = colours.soft;
    context.fillText(text, x + 14, y);
    x += 34 + context.measureText(text).width;
  }
}

/** `scene`: the result of framesOf, with `chosen`; `at`: a frame plus a fraction of the next. */
export function paintHarbour(context, width, height, scene, at, colours) {
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  const places = placesOf(width, height, scene);
  const frame = scene.frames[Math.min(scene.frames.length - 1, Math.floor(at))];
  if (!frame) return;
  context.save();
  context.beginPath();
  context.rect(0, 0, width, places.quay);
  context.clip();
  for (const ship of fleet(scene, at)) paintShip(context, ship, places, colours, scene.chosen);
  context.restore();
  paintQuay(context, places, width, scene, colours);
  paintChart(context, places, scene, at, colours);
  paintKey(context, places, scene, frame, colours);
}

/** The buffer at a point; null where there is water. */
export function bufferAt(scene, at, width, height, x, y) {
  const places = placesOf(width, height, scene);
  if (y < places.top || y > places.quay) return null;
  const { alive } = scene.frames[Math.min(scene.frames.length - 1, Math.floor(at))] ?? { alive: [] };
  const hit = ({ offset, size }) => x >= places.x(offset) && x < Math.max(places.x(offset + size), places.x(offset) + 3);
  return alive.findLast(hit) ?? null;
}
