/** Will it fit: the memory of a language model for every context length, compared with the available memory. */
import { $, el, later } from './dom.js';
import { amount, bytes, count, exactBytes } from './format.js';
import { Cancelled } from './client.js';
import { clearAlert, showAlert } from './alerts.js';
import { device } from './devices.js';
import { drawChart, layers, shareAt } from './chart.js';
import { CtxScale } from './ctx_scale.js';

const GIB = 2 ** 30;
const DEFAULT_CTX = 4096; // if the file does not say what the model was made with, and the initial maximum
const CHUNK = 64;
const HEIGHT = 280; // pixels of the chart

let client = null;
let setCtx = () => {}; // updates the rest of the page
let current = null; // { model (a handle), language, scale, ctx, kv, series: { key: plans }, turn }

/** Cache options of generators and plans of the open model; nothing for other models. */
export const cacheOptions = () => (current ? { kv: current.kv } : {});

/** Options of a generator of the model that is open. */
export const generatorOptions = () => ({ device: device(), ctx: current.ctx, kv: current.kv });

/** Rows of layers with a sliding window: the window plus a chunk minus one. Nothing if no layer has one. */
export function nearFor(ctx, rows) {
  const window = current?.language.window ?? 0;
  return window > 0 && ctx > 0 && rows > 0 ? { near: Math.min(ctx, window + rows - 1) } : {};
}

/** The dimensions of a generator that reads a prompt. */
export const dimsFor = (ctx) => ({ rows: chunkFor(ctx), ctx, ...nearFor(ctx, chunkFor(ctx)) });

export const chunkFor = (ctx) => Math.min(CHUNK, ctx);

const budget = () => {
  const given = Number($('fit-budget').value);
  return given > 0 ? given * GIB : 0;
};
const seriesKey = () => `${device()} ${current.kv}`;
const series = () => current.series[seriesKey()] ?? [];

// ---- Display ----

function draw() {
  const plans = series();
  const svg = $('fit-chart');
  const width = svg.parentElement.clientWidth;
  if (plans.length === 0 || width === 0) return;
  const largest = Math.max(...Object.values(current.series).flatMap((all) => all.map((plan) => plan.arena_size)));
  drawChart(svg, { ...current, plans, budget: budget(), largest, width, height: HEIGHT });
  svg.dataset.points = plans.length;
}

function showPlan(plan) {
  const size = $('fit-size');
  size.textContent = bytes(plan.arena_size);
  size.dataset.bytes = plan.arena_size;
  size.title = exactBytes(plan.arena_size);
  $('fit-legend').replaceChildren(
    ...layers.map(({ kind, title, of }) =>
      el(
        'li',
        { 'data-test': `fit-${kind}`, 'data-bytes': of(plan) },
        el('span', { class: `dot ${kind}`, 'aria-hidden': 'true' }),
        `${title} `,
        el('b', { text: bytes(of(plan)), title: exactBytes(of(plan)) }),
      ),
    ),
  );
}

function showTable() {
  $('fit-rows').replaceChildren(
    ...series().map((plan) =>
      el(
        'tr',
        {},
        el('th', { scope: 'row', text: count(plan.ctx) }),
        ...layers.map(({ of }) => el('td', { class: 'number', title: exactBytes(of(plan)), text: bytes(of(plan)) })),
        el('td', { class: 'number', title: exactBytes(plan.arena_size), text: bytes(plan.arena_size) }),
      ),
    ),
  );
}

function showFields() {
  const { scale, ctx, kv, language } = current;
  $('fit-slider').max = scale.steps;
  $('fit-slider').value = Math.round(scale.share(ctx) * scale.steps);
  $('fit-slider').setAttribute('aria-valuetext', amount(ctx, 'token'));
  if (document.activeElement !== $('fit-ctx')) $('fit-ctx').value = ctx;
  $('fit-kv').replaceChildren(
    ...language.kv.map((kind) =>
      el('button', {
        type: 'button',
        'data-test': `kv-${kind}`,
        'aria-pressed': String(kind === kv),
        text: kind,
        onclick: () => change({ kv: kind }),
      }),
    ),
  );
}

function verdictOf(plan, fitting) {
  const { context } = current.language;
  const room = `${bytes(budget())}`;
  const fits = plan.arena_size <= budget();
  if (!fitting) return `does not fit into ${room}: one token alone takes more`;
  const isAll = fitting.ctx === context;
  const most = isAll ? `all ${count(context)} tokens it was made for` : amount(fitting.ctx, 'token');
  return fits ? `fits into ${room}, with room for ${most}` : `does not fit into ${room}; ${amount(fitting.ctx, 'token')} would`;
}

// ---- Requests ----

const ask = (kind, more = {}) => {
  const { ctx, ...options } = { ...generatorOptions(), ...more.options };
  const request = kind === 'size' ? { ...options, ctx, chunk: chunkFor(ctx) } : options;
  return client.call(kind, { ...more, model: current.model, options: request });
};

function keep(plan) {
  const key = seriesKey();
  const plans = (current.series[key] ?? []).filter(({ ctx }) => ctx !== plan.ctx);
  current.series[key] = [...plans, plan].sort((a, b) => a.ctx - b.ctx);
}

const markReady = (yes) => {
  if (yes) $('talk').dataset.ready = 'yes';
  else delete $('talk').dataset.ready;
};

/** The size at the chosen context, the points of the chart, then the largest context that fits. */
async function look() {
  const own = current, turn = ++own.turn;
  const isOver = () => own !== current || turn !== own.turn;
  markReady(false);
  try {
    const plan = await ask('size');
    if (isOver()) return;
    clearAlert('fit');
    showPlan(plan);
    for (const ctx of [own.scale.most, ...own.scale.points]) {
      if (series().some((known) => known.ctx === ctx)) continue;
      const point = await ask('size', { options: { ctx } });
      if (isOver()) return;
      keep(point);
      draw();
    }
    draw();
    showTable();
    $('fit-verdict').textContent = '';
    if (budget()) {
      const fitting = await ask('fit', { bytes: budget() });
      if (isOver()) return;
      $('fit-verdict').textContent = verdictOf(plan, fitting);
      $('fit-verdict').dataset.ctx = fitting?.ctx ?? 0;
    }
    markReady(true);
  } catch (error) {
    if (isOver() || error instanceof Cancelled) return;
    showAlert('fit', error);
    markReady(true);
  }
}
const lookSoon = later(120, look);

/** Another context or cache, from here or from the plan's fields. */
function change(values) {
  if (!current) return;
  Object.assign(current, values);
  showFields();
  draw();
  setCtx(current.ctx);
  markReady(false);
  lookSoon();
}

export function chooseCtx(ctx) {
  if (!current || ctx === current.ctx || !(Number.isInteger(ctx) && ctx >= 1)) return;
  change({ ctx });
}

/** After the device has changed, or a worker was terminated. */
export const fitAgain = () => current && look();

/** `language`: the worker's description of a GGUF file. Returns the initial dimensions of the plan. */
export function openFit(model, language) {
  const made = language.context || DEFAULT_CTX;
  const ctx = Math.min(made, DEFAULT_CTX);
  current = { model, language, scale: new CtxScale(made), ctx, kv: language.defaultKv, series: {}, turn: 0 };
  showFields();
  return dimsFor(ctx);
}

export function closeFit() {
  current = null;
}

/** The same model in another worker. */
export function moveFit(model) {
  if (current) current.model = model;
}

function followPointer(svg) {
  let isDown = false;
  const follow = (event) => {
    const box = svg.getBoundingClientRect();
    if (current) change({ ctx: current.scale.at(shareAt(event.clientX - box.left, box.width)) });
  };
  svg.addEventListener('pointerdown', (event) => {
    isDown = true;
    svg.setPointerCapture(event.pointerId);
    follow(event);
  });
  svg.addEventListener('pointermove', (event) => isDown && follow(event));
  for (const end of ['pointerup', 'pointercancel']) svg.addEventListener(end, () => (isDown = false));
}

/** `whenCtx(ctx)` is called when another context is chosen here. */
export function watchFit(ownClient, whenCtx) {
  client = ownClient;
  setCtx = whenCtx;
  $('fit-budget').value = navigator.deviceMemory ?? 8;
  $('fit-slider').addEventListener('input', () => {
    if (current) change({ ctx: current.scale.at($('fit-slider').value / current.scale.steps) });
  });
  $('fit-ctx').addEventListener('input', () => {
    const ctx = Number($('fit-ctx').value);
    const good = Number.isInteger(ctx) && ctx >= 1 && ctx < 2 ** 31;
    $('fit-ctx').setAttribute('aria-invalid', String(!good));
    if (good) chooseCtx(ctx);
  });
  $('fit-budget').addEventListener('input', () => {
    draw();
    lookSoon();
  });
  followPointer($('fit-chart'));
  new ResizeObserver(() => current && draw()).observe($('fit-chart').parentElement);
}
