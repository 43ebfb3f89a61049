/** The original graph: navigation, search, attributes, and the positions of values in the plan. */
import { $, el, later, sharpen } from './dom.js';
import { amount, bytes, count, typeOf } from './format.js';
import { choosePicture } from './picture.js';
import { paintGraph, stripeOf } from './graph_draw.js';

const NEAREST = 2,
  FARTHEST = 0.02;
const SHOWN = 40; // results of a search
const TAP = 6; // pixels that a tap may move

const canvas = $('graph-canvas');
let page = null; // { client, current() }
let graph = null; // { handle, nodes, values (by name), layout }
let plan = null; // { values: by name, dims }
let view = { x: 0, y: 0, scale: 1 };
let chosen = -1;
let found = new Set();
let due = false;
let isNear = false; // the section was visible

function repaint() {
  if (due || !graph) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    const { width, height } = canvas.getBoundingClientRect();
    if (width === 0 || !graph) return;
    paintGraph(sharpen(canvas, width, height), width, height, graph.layout, view, chosen, found);
  });
}

/** Fits the whole graph if it is readable then; otherwise its beginning. */
function fit() {
  const { width, height } = canvas.getBoundingClientRect();
  const { left, right, top, bottom } = graph.layout.box;
  const whole = Math.min(width / (right - left + 40), height / (bottom - top + 40));
  view = { x: (left + right) / 2, y: (top + bottom) / 2, scale: Math.min(1, whole) };
  repaint();
}

function begin() {
  fit();
  if (view.scale >= 0.5) return;
  const first = graph.layout.nodes.find(({ kind }) => kind === 'input') ?? graph.layout.nodes[0];
  const { height } = canvas.getBoundingClientRect();
  view = { x: first?.x ?? 0, y: (first?.y ?? 0) + height / 2 - 60, scale: 1 };
  repaint();
}

function zoomBy(factor, x = 0, y = 0) {
  const scale = Math.min(NEAREST, Math.max(FARTHEST, view.scale * factor));
  const by = 1 / view.scale - 1 / scale;
  view = { x: view.x + x * by, y: view.y + y * by, scale };
  repaint();
}

function nodeAt(event) {
  const box = canvas.getBoundingClientRect();
  const x = (event.clientX - box.left - box.width / 2) / view.scale + view.x,
    y = (event.clientY - box.top - box.height / 2) / view.scale + view.y;
  return graph.layout.nodes.findIndex((n) => Math.abs(x - n.x) <= n.width / 2 && Math.abs(y - n.y) <= n.height / 2);
}

/** A value with its type and, if it has bytes in the plan, a button to find it. */
function valueLine(name) {
  const value = graph.values.get(name);
  const placed = plan?.values.get(name);
  const where = placed
    ? el('button', { type: 'button', class: 'link', 'data-test': 'to-plan', text: `${bytes(placed.size)} in the plan`, onclick: () => toPlan(placed.name) })
    : el('span', { class: 'hint', text: plan ? 'no bytes of its own: computed inside another step' : '' });
  return el('li', {}, el('span', { class: 'mono', text: name }), el('span', { class: 'hint', text: ` ${value ? typeOf(value) : ''} ` }), where);
}

function toPlan(name) {
  choosePicture(name);
  $('picture').scrollIntoView({ block: 'center' });
}

const attrText = (value) => (Array.isArray(value) ? `[${value.slice(0, 24).join(', ')}${value.length > 24 ? ', …' : ''}]` : String(value));

function list(title, names) {
  const given = names.filter(Boolean);
  return given.length ? [el('h4', { text: title }), el('ul', { class: 'graph-values' }, ...given.map(valueLine))] : [];
}

function showDetail() {
  const node = graph?.layout.nodes[chosen];
  if (!node) {
    $('graph-detail').replaceChildren(el('p', { class: 'hint', text: 'Nothing is chosen. Click a node, or search for one.' }));
    return;
  }
  const own = graph.nodes[node.index];
  const attrs = Object.entries(own?.attrs ?? {});
  $('graph-detail').replaceChildren(
    el('p', {}, el('b', { text: node.op }), own ? el('span', { class: 'hint mono', text: ` ${own.name}` }) : el('span', { class: 'hint', text: ` ${node.kind}` })),
    ...(attrs.length ? [el('dl', { class: 'graph-attrs' }, ...attrs.flatMap(([key, value]) => [el('dt', { text: key }), el('dd', { class: 'mono', text: attrText(value) })]))] : []),
    ...list('Reads', node.in),
    ...list('Makes', node.out),
  );
}

function choose(i, reveal) {
  chosen = i;
  if (i >= 0) $('graph').dataset.chosen = graph.nodes[graph.layout.nodes[i].index]?.name ?? graph.layout.nodes[i].op;
  else delete $('graph').dataset.chosen;
  if (i >= 0 && reveal) {
    const { x, y } = graph.layout.nodes[i];
    view = { x, y, scale: Math.max(0.8, view.scale) };
  }
  showDetail();
  repaint();
}

function search() {
  const words = $('graph-search').value.toLowerCase().split(/\s+/).filter(Boolean);
  found = new Set();
  if (!graph || words.length === 0) {
    $('graph-found').replaceChildren();
    repaint();
    return;
  }
  graph.layout.nodes.forEach(({ op, index, out }, i) => {
    const text = `${op} ${graph.nodes[index]?.name ?? ''} ${out.join(' ')}`.toLowerCase();
    if (words.every((word) => text.includes(word))) found.add(i);
  });
  const items = [...found].slice(0, SHOWN).map((i) => {
    const { op, index } = graph.layout.nodes[i];
    const button = el('button', { type: 'button', class: 'link', onclick: () => choose(i, true) }, op);
    return el('li', {}, button, el('span', { class: 'hint mono', text: ` ${graph.nodes[index]?.name ?? ''}` }));
  });
  const rest = found.size > SHOWN ? ` The first ${SHOWN} are listed.` : '';
  $('graph-found').replaceChildren(el('li', { class: 'hint', text: `${count(found.size)} found.${rest}` }), ...items);
  repaint();
}

/** Up and down along edges, left and right within a layer. */
function step(key) {
  const { nodes } = graph.layout;
  if (chosen < 0) return 0;
  const { before, after, x, y } = nodes[chosen];
  if (key === 'ArrowUp') return before[0] ?? chosen;
  if (key === 'ArrowDown') return after[0] ?? chosen;
  const row = nodes.map((node, i) => ({ ...node, i })).filter((node) => node.y === y && (key === 'ArrowLeft' ? node.x < x : node.x > x));
  return row.sort((a, b) => Math.abs(a.x - x) - Math.abs(b.x - x))[0]?.i ?? chosen;
}

function watchKeys() {
  canvas.addEventListener('keydown', (event) => {
    const { key } = event;
    if (!graph || event.ctrlKey || event.metaKey || event.altKey) return;
    if (key === '+' || key === '=') zoomBy(1.4);
    else if (key === '-') zoomBy(1 / 1.4);
    else if (key === '0') fit();
    else if (key === 'Escape') choose(-1, false);
    else if (key.startsWith('Arrow')) choose(step(key), true);
    else return;
    event.preventDefault();
  });
}

/** One pointer drags and taps, two pointers zoom. */
function watchPointers() {
  const down = new Map();
  let slipped = 0;
  canvas.addEventListener('pointerdown', (event) => {
    if (!graph || event.button !== 0) return;
    if (down.size === 0) slipped = 0;
    down.set(event.pointerId, event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    const before = down.get(event.pointerId);
    if (!before) return;
    const other = [...down.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    down.set(event.pointerId, event);
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    slipped += Math.hypot(dx, dy);
    if (other) {
      const apart = (e) => Math.max(1, Math.hypot(e.clientX - other.clientX, e.clientY - other.clientY));
      zoomBy(apart(event) / apart(before));
    } else if (slipped > TAP) {
      view = { ...view, x: view.x - dx / view.scale, y: view.y - dy / view.scale };
      repaint();
    }
  });
  const lift = (event) => {
    if (down.delete(event.pointerId) && event.type === 'pointerup' && slipped <= TAP) choose(nodeAt(event), false);
  };
  canvas.addEventListener('pointerup', lift);
  canvas.addEventListener('pointercancel', lift);
  canvas.addEventListener('wheel', (event) => {
    if (!graph || (!event.ctrlKey && !event.metaKey)) return; // the plain wheel scrolls the page
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoomBy(Math.exp(-event.deltaY / 200), event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2);
  }, { passive: false });
}

const keyNow = () => `${page.current()?.handle} ${JSON.stringify(plan?.dims)}`;

async function load() {
  const { handle } = page.current() ?? {};
  const key = keyNow();
  if (!isNear || !plan || handle === undefined || graph?.key === key) return;
  const isOther = graph?.handle !== handle;
  if (isOther) delete $('graph').dataset.nodes;
  const { nodes, values, layout } = await page.client.call('graph', { model: handle, dims: plan.dims });
  if (keyNow() !== key) return;
  graph = { key, handle, nodes, values: new Map(values.map((value) => [value.name, value])), layout };
  for (const node of layout.nodes) {
    const value = graph.values.get(node.out[0] ?? node.in[0]);
    node.stripe = stripeOf(node);
    node.shape = value ? `[${value.shape.join(', ')}]` : '';
  }
  if (isOther) chosen = -1;
  if (isOther) begin();
  $('graph').dataset.nodes = nodes.length;
  $('graph-count').textContent = amount(nodes.length, 'node');
  search();
}

const say = (error) => $('graph-detail').replaceChildren(el('p', { class: 'hint', text: error.message }));

/** Names in the plan have suffixes where rewriting changed a value: its layout, its slices. */
const plainName = (name) => name.replace(/#.*$/, '');

/** Values with bytes in the plan, by their name in the graph; of several, such as slices, the largest. */
function placedValues(values) {
  const placed = new Map();
  for (const value of values) {
    const name = plainName(value.name);
    if (value.offset < 0 || value.size === 0 || value.kind === 'scratch') continue;
    if (value.name === name || (placed.get(name)?.size ?? 0) < value.size) placed.set(name, value);
  }
  return placed;
}

/** Called after every plan, with its `values` and dimensions. */
export function showGraph(values, dims) {
  plan = { values: placedValues(values), dims };
  load().then(showDetail, say);
}

/** The node that makes a value, selected in the picture or the table. */
function follow(name) {
  const i = name && graph ? graph.layout.nodes.findIndex(({ out }) => out.includes(plainName(name))) : -1;
  if (i >= 0 && i !== chosen) choose(i, true);
}

export function watchGraph(given) {
  page = given;
  watchPointers();
  watchKeys();
  $('graph-search').addEventListener('input', later(120, search));
  $('graph-search').addEventListener('keydown', (event) => {
    if (event.key === 'Enter') search(); // the search may not have run yet
    if (event.key === 'Enter' && found.size) choose([...found][0], true);
  });
  $('graph-in').addEventListener('click', () => zoomBy(1.4));
  $('graph-out').addEventListener('click', () => zoomBy(1 / 1.4));
  $('graph-fit').addEventListener('click', () => graph && fit());
  new ResizeObserver(repaint).observe(canvas);
  addEventListener('themechange', repaint);
  new MutationObserver(() => follow($('picture').dataset.selected)).observe($('picture'), { attributeFilter: ['data-selected'] });
  new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    isNear = true;
    load().then(showDetail, say);
  }, { rootMargin: '300px' }).observe($('graph'));
}
