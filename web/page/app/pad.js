/**
 * A square to draw in, with mouse, pen, fingers or keys. The ink is stored separately from its display in the theme's
 * colours.
 */
import { colour, sharpen } from './dom.js';

export const SIDE = 128; // points per side
const PEN = 10; // width of a stroke in points
const STEP = 5; // points per arrow key

function paintHint(context, width, height) {
  Object.assign(context, {
    font: '16px system-ui, sans-serif',
    textAlign: 'center',
    textBaseline: 'middle',
    fillStyle: colour('--ink-soft'),
  });
  context.fillText('draw here', width / 2, height / 2);
}

export class Pad {
  #canvas;
  #ink = new OffscreenCanvas(SIDE, SIDE);
  #context = this.#ink.getContext('2d', { willReadFrequently: true });
  #pen = { x: SIDE / 2, y: SIDE / 4, down: false };
  #keyed = false;
  #isEmpty = true;
  #isShown = false; // drawn by the page: removed when the user draws
  #due = false;

  constructor(canvas, onChange) {
    this.#canvas = canvas;
    this.onChange = onChange;
    Object.assign(this.#context, {
      lineWidth: PEN,
      lineCap: 'round',
      lineJoin: 'round',
      strokeStyle: '#000',
      fillStyle: '#000',
    });
    this.#watchPointer();
    this.#watchKeys();
    new ResizeObserver(() => this.#paint()).observe(canvas);
    addEventListener('themechange', () => this.#paint());
  }

  #line(from, to) {
    this.#context.beginPath();
    this.#context.moveTo(from.x, from.y);
    this.#context.lineTo(to.x + 0.01, to.y);
    this.#context.stroke();
    this.#isEmpty = false;
    this.#paint();
    this.onChange();
  }

  #watchPointer() {
    const strokes = new Map();
    const at = (event) => {
      const box = this.#canvas.getBoundingClientRect();
      return { x: ((event.clientX - box.left) / box.width) * SIDE, y: ((event.clientY - box.top) / box.height) * SIDE };
    };
    this.#canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      this.#keyed = false;
      this.#makeWay();
      this.#canvas.setPointerCapture(event.pointerId);
      strokes.set(event.pointerId, at(event));
      this.#line(at(event), at(event));
    });
    this.#canvas.addEventListener('pointermove', (event) => {
      const from = strokes.get(event.pointerId);
      if (!from) return;
      const to = at(event);
      strokes.set(event.pointerId, to);
      this.#line(from, to);
    });
    for (const end of ['pointerup', 'pointercancel']) {
      this.#canvas.addEventListener(end, (event) => strokes.delete(event.pointerId));
    }
  }

  #watchKeys() {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    this.#canvas.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const move = moves[event.key];
      if (move) {
        const from = { ...this.#pen };
        const within = (n) => Math.min(SIDE - PEN / 2, Math.max(PEN / 2, n));
        this.#pen.x = within(from.x + move[0] * STEP);
        this.#pen.y = within(from.y + move[1] * STEP);
        if (this.#pen.down) this.#line(from, this.#pen);
      } else if (event.key === ' ') {
        if (!event.repeat) this.#pen.down = !this.#pen.down;
        if (this.#pen.down) this.#makeWay();
        if (this.#pen.down) this.#line(this.#pen, this.#pen);
      } else if (event.key === 'Backspace' || event.key === 'Delete') {
        this.clear();
      } else {
        return;
      }
      event.preventDefault();
      this.#keyed = true;
      this.#paint();
    });
    for (const change of ['focus', 'blur']) this.#canvas.addEventListener(change, () => this.#paint());
  }

  #paint() {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      const { width, height } = this.#canvas.getBoundingClientRect();
      if (width === 0) return;
      const context = sharpen(this.#canvas, width, height);
      context.clearRect(0, 0, width, height);
      context.drawImage(this.#ink, 0, 0, width, height);
      context.globalCompositeOperation = 'source-in';
      context.fillStyle = colour('--ink');
      context.fillRect(0, 0, width, height);
      context.globalCompositeOperation = 'source-over';
      if (this.#isEmpty) paintHint(context, width, height);
      if (this.#keyed && document.activeElement === this.#canvas) this.#paintPen(context, width / SIDE);
    });
  }

  #paintPen(context, scale) {
    context.beginPath();
    context.arc(this.#pen.x * scale, this.#pen.y * scale, (PEN / 2 + 2) * scale, 0, 2 * Math.PI);
    context.lineWidth = this.#pen.down ? 4 : 2;
    context.strokeStyle = colour('--mark');
    context.stroke();
  }

  /** The darkness of each point, 0 to 1. */
  ink() {
    const { data } = this.#context.getImageData(0, 0, SIDE, SIDE);
    return Float32Array.from({ length: SIDE * SIDE }, (_, i) => data[4 * i + 3] / 255);
  }

  clear() {
    this.#context.clearRect(0, 0, SIDE, SIDE);
    this.#pen.down = false;
    this.#isEmpty = true;
    this.#isShown = false;
    this.#paint();
    this.onChange();
  }

  get isEmpty() {
    return this.#isEmpty;
  }

  #makeWay() {
    if (!this.#isShown) return;
    const { down } = this.#pen;
    this.clear();
    this.#pen.down = down;
  }

  /** Draws lines of points, from 0 to 1 in both directions. */
  draw(lines) {
    this.clear();
    for (const line of lines) {
      for (let i = 1; i < line.length; i++) {
        const [from, to] = [line[i - 1], line[i]].map(([x, y]) => ({ x: x * SIDE, y: y * SIDE }));
        this.#line(from, to);
      }
    }
    this.#isShown = true;
  }
}
