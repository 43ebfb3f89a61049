/** The packing picture as SVG: the same painting code, with elements instead of pixels. */
import { colour } from './dom.js';
import { margin, paint } from './picture_draw.js';

const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
const short = (n) => String(Math.round(n * 100) / 100);

/** The colour and, if it is not opaque, the opacity of a colour in a browser's notation. */
const inked = (name, value, alpha) => {
  const [r, g, b, own = 1] = value.match(/[\d.]+/g).map(Number);
  const opacity = alpha * own;
  return `${name}="rgb(${r},${g},${b})"${opacity < 1 ? ` ${name}-opacity="${short(opacity)}"` : ''}`;
};

/** The part of a canvas's context that picture_draw.js uses. */
class SvgContext {
  parts = [];
  globalAlpha = 1;
  fillStyle = 'rgb(0, 0, 0)';
  strokeStyle = 'rgb(0, 0, 0)';
  lineWidth = 1;
  textAlign = 'left';
  textBaseline = 'alphabetic';
  #path = [];
  #dash = [];
  #measure = document.createElement('canvas').getContext('2d');
  #open = 0;

  set font(font) {
    this.#measure.font = font;
  }

  measureText(text) {
    return this.#measure.measureText(text);
  }

  clearRect() {}

  fillRect(x, y, w, h) {
    this.parts.push(`<rect ${this.#box(x, y, w, h)} ${inked('fill', this.fillStyle, this.globalAlpha)}/>`);
  }

  strokeRect(x, y, w, h) {
    this.parts.push(`<rect ${this.#box(x, y, w, h)} fill="none" ${this.#stroke()}/>`);
  }

  fillText(text, x, y) {
    const anchor = { left: 'start', center: 'middle', right: 'end' }[this.textAlign];
    const down = { middle: 4, top: 10 }[this.textBaseline] ?? 0; // not all programs support dominant-baseline
    this.parts.push(
      `<text x="${short(x)}" y="${short(y + down)}" text-anchor="${anchor}" ${inked('fill', this.fillStyle, 1)}>${escape(text)}</text>`,
    );
  }

  beginPath() {
    this.#path = [];
  }
  moveTo(x, y) {
    this.#path.push(`M${short(x)} ${short(y)}`);
  }
  lineTo(x, y) {
    this.#path.push(`L${short(x)} ${short(y)}`);
  }
  rect(x, y, w, h) {
    this.#path = [this.#box(x, y, w, h)];
  }
  stroke() {
    this.parts.push(`<path d="${this.#path.join('')}" ${this.#stroke()}/>`);
  }
  setLineDash(dash) {
    this.#dash = dash;
  }
  save() {}
  clip() {
    this.parts.push(`<clipPath id="plan"><rect ${this.#path[0]}/></clipPath><g clip-path="url(#plan)">`);
    this.#open++;
  }
  restore() {
    for (; this.#open > 0; this.#open--) this.parts.push('</g>');
  }

  #box(x, y, w, h) {
    return `x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}"`;
  }
  #stroke() {
    const dash = this.#dash.length ? ` stroke-dasharray="${this.#dash.join(' ')}"` : '';
    return `${inked('stroke', this.strokeStyle, this.globalAlpha)} stroke-width="${this.lineWidth}"${dash}`;
  }
}

const HEAD = 30,
  FOOT = 26;

/** `scene` and `size` as on the screen; `legend`: colours with their titles. */
export function pictureAsSvg(scene, { width, height }, title, legend) {
  const context = new SvgContext();
  paint(context, width, height, { ...scene, pointed: null });
  const ink = inked('fill', colour('--ink'), 1);
  let x = margin.left;
  const entries = legend.map(([fill, text]) => {
    const at = x;
    x += 22 + context.measureText(text).width + 14;
    return (
      `<rect x="${short(at)}" y="${height + 6}" width="11" height="11" rx="2" ${inked('fill', fill, 1)}/>` +
      `<text x="${short(at + 16)}" y="${height + 15}" ${ink}>${escape(text)}</text>`
    );
  });
  const all = `${Math.ceil(Math.max(width, x))} ${Math.ceil(height + HEAD + FOOT)}`;
  const [wide, high] = all.split(' ');
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 ${-HEAD} ${all}" width="${wide}" height="${high}" font-family="system-ui, sans-serif" font-size="11">`,
    `<title>${escape(title)}</title>`,
    `<rect x="0" y="${-HEAD}" width="${wide}" height="${high}" ${inked('fill', colour('--paper'), 1)}/>`,
    `<text x="${margin.left}" y="-10" font-size="14" font-weight="600" ${ink}>${escape(title)}</text>`,
    ...context.parts,
    ...entries,
    '</svg>\n',
  ].join('\n');
}
