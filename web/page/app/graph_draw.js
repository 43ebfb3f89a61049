/** Paints a graph that has been laid out: only the visible part, and only readable text. */
import { colour } from './dom.js';

const READABLE = 0.45; // below this scale no text is shown,
const FAR = 0.2; // and below this one, no outlines and no bends

const kinds = [
  [/conv|matmul|product|gemm|attention|lstm|gru|rnn/, '--kind-product'],
  [/norm|softmax|pool|reduce/, '--kind-scratch'],
  [/reshape|transpose|slice|concat|split|gather|expand|squeeze|pad|cast|identity|flatten/, '--kind-unshared'],
];

/** The colour of a node of this kind, by its variable. */
export const stripeOf = ({ kind, op }) => {
  if (kind === 'input') return '--kind-input';
  if (kind === 'output') return '--kind-output';
  return kinds.find(([pattern]) => pattern.test(op))?.[1] ?? '--kind-weight';
};

function pathOf(context, points, half) {
  let [x, y] = [points[0][0], points[0][1] + half];
  context.moveTo(x, y);
  for (let i = 1; i < points.length; i++) {
    const [nextX, nextY] = points[i];
    const end = i === points.length - 1 ? nextY - half : nextY;
    const bend = (end - y) / 2;
    context.bezierCurveTo(x, y + bend, nextX, end - bend, nextX, end);
    [x, y] = [nextX, end];
  }
}

/** Zoomed out: straight lines, all in one stroke. */
function paintFarEdges(context, edges, view, colours) {
  context.strokeStyle = colours.line;
  context.lineWidth = 1 / view.scale;
  context.beginPath();
  for (const { points } of edges) {
    if (points.at(-1)[1] < view.top || points[0][1] > view.bottom) continue;
    context.moveTo(...points[0]);
    for (let i = 1; i < points.length; i++) context.lineTo(...points[i]);
  }
  context.stroke();
}

function paintEdges(context, { nodes, edges }, view, colours, chosen) {
  if (view.scale < FAR) {
    paintFarEdges(context, edges, view, colours);
    return;
  }
  for (const { from, to, points } of edges) {
    if (points.at(-1)[1] < view.top || points[0][1] > view.bottom) continue;
    const isNear = chosen === from || chosen === to;
    context.strokeStyle = isNear ? colours.mark : colours.line;
    context.lineWidth = (isNear ? 2.4 : 1.3) / Math.max(0.5, view.scale);
    context.beginPath();
    pathOf(context, points, nodes[from].height / 2);
    context.stroke();
  }
}

function paintNode(context, node, i, view, colours, chosen, isFound) {
  const [left, top] = [node.x - node.width / 2, node.y - node.height / 2];
  if (view.scale < FAR) {
    context.fillStyle = i === chosen || isFound ? colours.mark : colour(node.stripe);
    context.fillRect(left, top, node.width, Math.max(node.height, 1 / view.scale));
    return;
  }
  context.fillStyle = i === chosen ? colours.soft : colours.card;
  context.strokeStyle = i === chosen ? colours.mark : isFound ? colours.accent : colours.field;
  context.lineWidth = i === chosen || isFound ? 2.5 : 1;
  context.beginPath();
  context.roundRect(left, top, node.width, node.height, 7);
  context.fill();
  context.stroke();
  context.fillStyle = colour(node.stripe);
  context.beginPath();
  context.roundRect(left, top, 7, node.height, [7, 0, 0, 7]);
  context.fill();
  if (view.scale < READABLE) return;
  context.fillStyle = colours.ink;
  context.font = '600 13px system-ui, sans-serif';
  context.fillText(node.op, left + 15, top + (node.shape ? 17 : node.height / 2));
  if (!node.shape) return;
  context.fillStyle = colours.inkSoft;
  context.font = '11px system-ui, sans-serif';
  context.fillText(node.shape, left + 15, top + 33, node.width - 20);
}

/** `view`: scale, x and y of the centre; `found`: the set of nodes found by a search. */
export function paintGraph(context, width, height, layout, view, chosen, found) {
  const colours = {
    line: colour('--field'), field: colour('--field'), card: colour('--card'), soft: colour('--accent-soft'),
    ink: colour('--ink'), inkSoft: colour('--ink-soft'), mark: colour('--mark'), accent: colour('--accent'),
  };
  const seen = {
    scale: view.scale,
    left: view.x - width / 2 / view.scale, right: view.x + width / 2 / view.scale,
    top: view.y - height / 2 / view.scale, bottom: view.y + height / 2 / view.scale,
  };
  context.clearRect(0, 0, width, height);
  context.save();
  context.translate(width / 2, height / 2);
  context.scale(view.scale, view.scale);
  context.translate(-view.x, -view.y);
  context.textBaseline = 'middle';
  paintEdges(context, layout, seen, colours, chosen);
  layout.nodes.forEach((node, i) => {
    const isIn = node.x + node.width / 2 > seen.left && node.x - node.width / 2 < seen.right &&
      node.y + node.height > seen.top && node.y - node.height < seen.bottom;
    if (isIn) paintNode(context, node, i, seen, colours, chosen, found.has(i));
  });
  context.restore();
}
