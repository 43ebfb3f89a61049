/**
 * The positions of a graph's nodes: in layers from top to bottom, with edges routed through the gaps. Pure functions.
 */

const GAP = 18; // pixels between neighbours
const LAYER = 84; // from one layer to the next
const NODE = { height: 46, least: 124, letter: 7.4, pad: 26 };
const LONGEST = 48; // layers that an edge is routed through; longer ones are straight
const SWEEPS = 4;

const widthOf = ({ op }) => Math.max(NODE.least, op.length * NODE.letter + NODE.pad);

/** Nodes with their predecessors and successors; inputs and outputs of the graph are nodes, too. */
function connect({ nodes, inputs, outputs }) {
  const all = [
    ...inputs.map((name) => ({ op: name, kind: 'input', in: [], out: [name] })),
    ...nodes.map((node, index) => ({ op: node.op, kind: 'node', index, in: node.in, out: node.out })),
    ...outputs.map(({ name, value }) => ({ op: name, kind: 'output', in: [value], out: [] })),
  ];
  const maker = new Map(all.flatMap((node, i) => node.out.map((value) => [value, i])));
  const before = all.map((node) => [...new Set(node.in.map((value) => maker.get(value)))].filter((i) => i !== undefined));
  const after = all.map(() => []);
  before.forEach((list, i) => list.forEach((from) => after[from].push(i)));
  return { all, before, after };
}

/** The layer of each node: below all its operands; inputs are right above their first reader. */
function layersOf({ all, before, after }) {
  const layer = all.map(() => 0);
  all.forEach(({ kind }, i) => {
    if (kind !== 'input') layer[i] = before[i].reduce((most, from) => Math.max(most, layer[from] + 1), 0);
  });
  const low = all.reduce((most, _, i) => Math.max(most, layer[i]), 0);
  all.forEach(({ kind }, i) => {
    if (kind === 'input') layer[i] = after[i].reduce((least, to) => Math.min(least, layer[to] - 1), low);
  });
  const top = layer.reduce((least, n) => Math.min(least, n), 0);
  return layer.map((n) => n - top);
}

/** Points of the drawing: nodes, and bends of edges that cross layers. */
function pointsOf(graph, layer) {
  const points = graph.all.map((node, i) => ({ node: i, layer: layer[i], width: widthOf(node), up: [], down: [] }));
  const paths = [];
  graph.before.forEach((list, to) => {
    for (const from of list) {
      const path = [from];
      const span = layer[to] - layer[from];
      if (span <= LONGEST) {
        for (let k = 1; k < span; k++) {
          path.push(points.length);
          points.push({ node: -1, layer: layer[from] + k, width: 6, up: [], down: [] });
        }
      }
      path.push(to);
      for (let k = 1; k < path.length; k++) {
        points[path[k]].up.push(path[k - 1]);
        points[path[k - 1]].down.push(path[k]);
      }
      paths.push({ from, to, path });
    }
  });
  return { points, paths };
}

const mean = (list, of) => list.reduce((sum, one) => sum + of(one), 0) / list.length;

/** Orders each layer by the positions of its neighbours, alternating down and up. */
function order(points) {
  const rows = [];
  points.forEach((point, i) => (rows[point.layer] ??= []).push(i));
  for (let n = 0; n < rows.length; n++) rows[n] ??= [];
  const place = (row) => row.forEach((i, at) => (points[i].at = at));
  rows.forEach(place);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isDown = sweep % 2 === 0;
    const turn = isDown ? rows : [...rows].reverse();
    for (const row of turn) {
      const key = (i) => {
        const near = isDown ? points[i].up : points[i].down;
        return near.length ? mean(near, (other) => points[other].at) : points[i].at;
      };
      const keys = new Map(row.map((i) => [i, key(i)]));
      row.sort((a, b) => keys.get(a) - keys.get(b) || points[a].at - points[b].at);
      place(row);
    }
  }
  return rows;
}

/** Positions in a row as close to the wishes as the widths allow: least squares. */
export function spread(wishes, widths) {
  const offsets = [];
  let sum = 0;
  widths.forEach((width, i) => {
    if (i > 0) sum += (widths[i - 1] + width) / 2 + GAP;
    offsets.push(sum);
  });
  const blocks = [];
  wishes.forEach((wish, i) => {
    let block = { mean: wish - offsets[i], count: 1 };
    while (blocks.length && blocks.at(-1).mean > block.mean) {
      const last = blocks.pop();
      const count = last.count + block.count;
      block = { mean: (last.mean * last.count + block.mean * block.count) / count, count };
    }
    blocks.push(block);
  });
  return blocks.flatMap(({ mean: at, count }) => Array(count).fill(at)).map((at, i) => at + offsets[i]);
}

function placeAcross(points, rows) {
  for (const row of rows) {
    const placed = spread(row.map(() => 0), row.map((i) => points[i].width));
    const middle = placed.length ? (placed[0] + placed.at(-1)) / 2 : 0;
    row.forEach((i, k) => (points[i].x = placed[k] - middle));
  }
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isDown = sweep % 2 === 0;
    for (const row of isDown ? rows : [...rows].reverse()) {
      const wish = (i) => {
        const near = isDown ? points[i].up : points[i].down;
        return near.length ? mean(near, (other) => points[other].x) : points[i].x;
      };
      const placed = spread(row.map(wish), row.map((i) => points[i].width));
      row.forEach((i, k) => (points[i].x = placed[k]));
    }
  }
}

/**
 * `graph`: nodes (op, in, out: names of values), inputs (names), outputs (name, value). Returns `nodes`: op, kind,
 * index (of a node of the graph), x and y (of the centre), width, height, before, after; `edges`: from, to, points;
 * `box`.
 */
export function layoutGraph(graph) {
  const connected = connect(graph);
  const { points, paths } = pointsOf(connected, layersOf(connected));
  placeAcross(points, order(points));
  const y = ({ layer }) => layer * LAYER;
  const nodes = connected.all.map(({ op, kind, index, in: read, out }, i) => ({
    op, kind, index, in: read, out,
    x: points[i].x, y: y(points[i]), width: points[i].width, height: NODE.height,
    before: connected.before[i], after: connected.after[i],
  }));
  const edges = paths.map(({ from, to, path }) => ({ from, to, points: path.map((i) => [points[i].x, y(points[i])]) }));
  const box = { left: 0, right: 1, top: -NODE.height, bottom: 1 };
  for (const { x, y: down, width } of nodes) {
    box.left = Math.min(box.left, x - width / 2);
    box.right = Math.max(box.right, x + width / 2);
    box.bottom = Math.max(box.bottom, down + NODE.height);
  }
  return { nodes, edges, box };
}
