/** The packing picture: repainting after changes, and pointers, fingers and keys. */
import { $, colour, el, sharpen } from './dom.js';
import { bytes } from './format.js';
import { margin, paint, placing } from './picture_draw.js';
import { pictureAsSvg } from './picture_svg.js';
import { roles } from './roles.js';
import { View } from './picture_view.js';

const STEP = 1.6; // zoom per press on + or -
const TAP = 6; // pixels that a tap may move

const canvas = $('picture');
const tip = $('tip');
const scene = { buffers: [], view: new View(0, 1, 0, 1), floor: 0, bound: 0, pointed: null, chosen: null };
let all = [];
let size = { width: 0, height: 0 };
let onChoose = () => {};
let due = false;

/** Values that a run neither makes nor reads for the first time. */
const isLasting = ({ group }) => group === 'weight' || group === 'preparation';

function repaint() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    const box = canvas.getBoundingClientRect();
    if (box.width === 0) return;
    size = { width: box.width, height: box.height };
    paint(sharpen(canvas, box.width, box.height), box.width, box.height, scene);
    canvas.dataset.zoom = scene.view.zoom.toFixed(2);
    canvas.style.touchAction = scene.view.zoom > 1.01 ? 'none' : 'pan-y';
  });
}

function choose(buffer, reveal) {
  scene.chosen = buffer;
  if (buffer && reveal) scene.view.reveal(buffer);
  if (buffer) canvas.dataset.selected = buffer.name;
  else delete canvas.dataset.selected;
  onChoose(buffer);
  repaint();
}

function at(event) {
  const box = canvas.getBoundingClientRect();
  const x = event.clientX - box.left,
    y = event.clientY - box.top;
  const across = size.width - margin.left - margin.right,
    up = size.height - margin.top - margin.bottom;
  return { x, y, fx: (x - margin.left) / across, fy: (size.height - margin.bottom - y) / up };
}

function bufferAt({ x, y }) {
  const place = placing(scene.view, size.width, size.height);
  for (let i = scene.buffers.length - 1; i >= 0; i--) {
    const [left, top, width, height] = place.box(scene.buffers[i]);
    if (x >= left && x < left + Math.max(width, 2) && y >= top && y < top + Math.max(height, 2))
      return scene.buffers[i];
  }
  return null;
}

function point(event) {
  const where = at(event);
  const buffer = event.type === 'pointerleave' ? null : bufferAt(where);
  if (buffer !== scene.pointed) {
    scene.pointed = buffer;
    onChoose(buffer ?? scene.chosen);
    repaint();
  }
  tip.hidden = !buffer || event.pointerType !== 'mouse';
  if (tip.hidden) return;
  tip.textContent = `${buffer.name} · ${bytes(buffer.size)} · steps ${buffer.birth}–${buffer.death}`;
  const left = Math.min(where.x + 14, size.width - tip.offsetWidth - 4);
  tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(0, where.y - 34)}px)`;
}

function zoomBy(factor, where = { fx: 0.5, fy: 0.5 }) {
  scene.view.zoomBy(factor, where.fx, where.fy);
  repaint();
}

function moveBy(dx, dy) {
  scene.view.moveBy(-dx / (size.width - margin.left - margin.right), dy / (size.height - margin.top - margin.bottom));
  repaint();
}

/** Pointers: one drags and taps, two zoom. */
function watchPointers() {
  const down = new Map();
  let slipped = 0;
  const spread = () => {
    const [a, b] = [...down.values()];
    return { apart: Math.hypot(a.x - b.x, a.y - b.y), fx: (a.fx + b.fx) / 2, fy: (a.fy + b.fy) / 2 };
  };
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    if (down.size === 0) slipped = 0;
    down.set(event.pointerId, at(event));
    if (event.pointerType === 'mouse') canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    const before = down.get(event.pointerId);
    if (!before) return point(event);
    const pinched = down.size === 2 ? spread() : null;
    const now = at(event);
    down.set(event.pointerId, now);
    slipped += Math.hypot(now.x - before.x, now.y - before.y);
    if (pinched) {
      const after = spread();
      zoomBy(after.apart / Math.max(1, pinched.apart), after);
    } else if (down.size === 1 && slipped > TAP) {
      moveBy(now.x - before.x, now.y - before.y);
    }
  });
  const lift = (event) => {
    if (!down.delete(event.pointerId) || event.type === 'pointercancel' || slipped > TAP) return;
    choose(bufferAt(at(event)), false);
  };
  canvas.addEventListener('pointerup', lift);
  canvas.addEventListener('pointercancel', lift);
  canvas.addEventListener('pointerleave', point);
  canvas.addEventListener(
    'wheel',
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the plain wheel scrolls the page
      event.preventDefault();
      zoomBy(Math.exp(-event.deltaY / 200), at(event));
    },
    { passive: false },
  );
}

/** The buffer next to the selected one: in time for left and right, in bytes among those alive for up and down. */
function neighbour(key) {
  const { buffers, chosen } = scene;
  const inTime = [...buffers].sort((a, b) => a.birth - b.birth || a.offset - b.offset);
  if (!chosen || key === 'Home') return inTime[0];
  if (key === 'End') return inTime[inTime.length - 1];
  if (key === 'ArrowLeft' || key === 'ArrowRight') {
    return inTime[inTime.indexOf(chosen) + (key === 'ArrowRight' ? 1 : -1)] ?? chosen;
  }
  const alive = buffers.filter((b) => b.birth < chosen.death && b.death > chosen.birth);
  const ranked = alive.sort((a, b) => a.offset - b.offset || a.birth - b.birth);
  return ranked[ranked.indexOf(chosen) + (key === 'ArrowUp' ? 1 : -1)] ?? chosen;
}

function watchKeys() {
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  canvas.addEventListener('keydown', (event) => {
    const { key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (key === '+' || key === '=') zoomBy(STEP);
    else if (key === '-') zoomBy(1 / STEP);
    else if (key === '0') fit();
    else if (key === 'Escape') choose(null, false);
    else if (event.shiftKey && moves[key]) moveBy(-80 * moves[key][0], 80 * moves[key][1]);
    else if (moves[key] || key === 'Home' || key === 'End') choose(neighbour(key) ?? null, true);
    else return;
    event.preventDefault();
  });
}

function fit() {
  scene.view.fit();
  repaint();
}

let report = null;
let firstRunStep = 0; // the steps before it are the prelude

/** Only what is planned for every run, or also the weights. */
function showPart(whole) {
  const shown = whole ? all : all.filter((buffer) => !isLasting(buffer));
  const below = report.weights_size + report.state_size; // what is always alive
  const bottom = whole ? 0 : below;
  scene.buffers = shown;
  scene.floor = bottom;
  scene.bound = report.activations_lower_bound + (whole ? below : 0);
  scene.view = new View(whole ? 0 : firstRunStep, report.n_steps, bottom, report.arena_size);
  if (!shown.includes(scene.chosen)) choose(null, false);
  $('show-activations').setAttribute('aria-pressed', String(!whole));
  $('show-arena').setAttribute('aria-pressed', String(whole));
  canvas.dataset.buffers = shown.length;
  canvas.dataset.first = scene.view.x0;
  showLegend();
  repaint();
}

const shownRoles = () => Object.keys(roles).filter((role) => scene.buffers.some(({ group }) => group === role));

/** The visible part as a file, with the same colours and labels. */
export const pictureSvg = (title) =>
  pictureAsSvg(scene, size, title, shownRoles().map((role) => [colour(`--kind-${role}`), roles[role]]));

function showLegend() {
  const there = shownRoles();
  $('legend').replaceChildren(
    ...there.map((group) =>
      el('li', {}, el('span', { class: `dot kind-${group}`, 'aria-hidden': 'true' }), roles[group]),
    ),
    el('li', {}, el('span', { class: 'dash', 'aria-hidden': 'true' }), 'Least possible'),
  );
}

/** A label ends where another value overwrites the slot. */
function markLabels(buffers) {
  const byName = new Map(buffers.map((buffer) => [buffer.name, buffer]));
  for (const buffer of buffers) buffer.labelEnd = buffer.death;
  for (const { shares, birth } of buffers) {
    const owner = byName.get(shares);
    if (owner && birth > owner.birth) owner.labelEnd = Math.min(owner.labelEnd, birth);
  }
}

export function showPicture(plan) {
  ({ report, firstRunStep } = plan);
  // Values in another's slot are painted over it.
  all = plan.values
    .filter((value) => value.offset >= 0 && value.size > 0 && value.death > value.birth)
    .sort((a, b) => (a.shares === '' ? 0 : 1) - (b.shares === '' ? 0 : 1) || a.birth - b.birth);
  markLabels(all);
  const kept = scene.chosen?.name;
  scene.pointed = null;
  scene.chosen = all.find((buffer) => buffer.name === kept) ?? null;
  showPart($('show-arena').getAttribute('aria-pressed') === 'true' || all.every(isLasting));
  onChoose(scene.chosen);
}

/** Selects a buffer by its name, like a row of the table. */
export function choosePicture(name) {
  const buffer = all.find((b) => b.name === name) ?? null;
  if (buffer && !scene.buffers.includes(buffer)) showPart(true);
  choose(buffer, true);
}

export function watchPicture(whenChosen) {
  onChoose = whenChosen;
  watchPointers();
  watchKeys();
  $('zoom-in').addEventListener('click', () => zoomBy(STEP));
  $('zoom-out').addEventListener('click', () => zoomBy(1 / STEP));
  $('zoom-fit').addEventListener('click', fit);
  $('show-activations').addEventListener('click', () => showPart(false));
  $('show-arena').addEventListener('click', () => showPart(true));
  new ResizeObserver(repaint).observe(canvas);
  addEventListener('themechange', repaint);
}
