/** Helpers for creating and finding elements. */

export const $ = (id) => document.getElementById(id);

/** el('p', { class: 'hint', text: 'none' }, child, ...): properties that begin with `on` are listeners. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'text') element.textContent = value;
    else if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Saves a file. */
export function save(name, parts, type) {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  el('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function later(milliseconds, act) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), milliseconds);
  };
}

const probe = el('span', { class: 'probe', hidden: true });
const colours = new Map();
addEventListener('themechange', () => colours.clear());

/** The current colour of a CSS variable, for a canvas. */
export function colour(name) {
  if (!colours.has(name)) {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = `var(${name})`;
    colours.set(name, getComputedStyle(probe).color);
  }
  return colours.get(name);
}

/** Sets a canvas to the screen's resolution; returns its context, in CSS pixels. */
export function sharpen(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const across = Math.round(width * ratio),
    down = Math.round(height * ratio);
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
