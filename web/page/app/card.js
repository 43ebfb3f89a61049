/** Pictures for sharing, as SVG text: a card with the verdicts, and a badge for a README. Pure functions. */
import { bytes, exactBytes } from './format.js';

const escape = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const FONT = `font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"`;
const SERIF = `font-family="Palatino, 'Palatino Linotype', Georgia, 'DejaVu Serif', serif"`;

const colours = {
  paper: '#f4f7f6', card: '#ffffff', ink: '#14303d', soft: '#4d6570', line: '#d6e0e1', accent: '#12606b',
  fits: '#2c7a52', tight: '#946200', no: '#b8401f', weights: '#7fa6c9', rest: '#7cbcbb', unshared: '#c3ccd1',
  input: '#e0b466', output: '#e79a7f', value: '#7cbcbb', scratch: '#b3a6cf',
};

const WIDTH = 1200,
  HEIGHT = 630;

/** Truncates a text to its space. */
const cut = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

const words = { fits: 'fits', tight: 'fits in slices', no: 'does not fit' };

function tile({ name, state, text, share }, x, y) {
  const colour = colours[state];
  const wide = 520;
  const fill = Math.min(1, Math.max(0.01, share)) * (wide - 40);
  return `<g transform="translate(${x} ${y})">
<rect width="${wide}" height="104" rx="12" fill="${colours.card}" stroke="${colours.line}"/>
<circle cx="30" cy="34" r="9" fill="${colour}"/>
<text x="50" y="41" ${FONT} font-size="20" font-weight="600" fill="${colours.ink}">${escape(name)}</text>
<text x="${wide - 20}" y="41" ${FONT} font-size="18" font-weight="600" text-anchor="end" fill="${colour}">${words[state]}</text>
<text x="20" y="69" ${FONT} font-size="14.5" fill="${colours.soft}">${escape(cut(text, 66))}</text>
<rect x="20" y="82" width="${wide - 40}" height="8" rx="4" fill="${colours.line}"/>
<rect x="20" y="82" width="${fill.toFixed(1)}" height="8" rx="4" fill="${colour}"/>
</g>`;
}

/** A small packing picture of plain rectangles. `boxes`: group, and x, y, width, height from 0 to 1. */
const thumb = (boxes, x, y, width, height) =>
  `<g transform="translate(${x} ${y})"><rect width="${width}" height="${height}" rx="12" fill="${colours.card}" stroke="${colours.line}"/>` +
  boxes
    .map(({ group, box: [left, bottom, wide, tall] }) => {
      const [w, h] = [Math.max(0.6, wide * (width - 24)), Math.max(0.6, tall * (height - 24))];
      const top = height - 12 - (bottom + tall) * (height - 24);
      return `<rect x="${(12 + left * (width - 24)).toFixed(1)}" y="${top.toFixed(1)}" width="${w.toFixed(1)}" height="${h.toFixed(1)}" fill="${colours[group] ?? colours.value}"/>`;
    })
    .join('') +
  '</g>';

/** `model`: name, arena, unshared (bytes); `tiles`: name, state, text, share; `boxes`: see thumb. */
export function cardSvg({ name, arena, unshared, line, tiles, boxes }) {
  const less = unshared > arena ? `; ${bytes(unshared)} without sharing` : '';
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}">
<rect width="${WIDTH}" height="${HEIGHT}" fill="${colours.paper}"/>
<text x="60" y="88" ${FONT} font-size="22" fill="${colours.soft}">Will it fit?</text>
<text x="60" y="146" ${SERIF} font-size="50" font-weight="600" fill="${colours.ink}">${escape(cut(name, 40))}</text>
<text x="60" y="196" ${FONT} font-size="24" fill="${colours.ink}">One block of ${escape(exactBytes(arena))} (${escape(bytes(arena))})${escape(less)}</text>
<text x="60" y="230" ${FONT} font-size="19" fill="${colours.soft}">${escape(cut(line, 110))}</text>
${tiles.map((one, i) => tile(one, 60 + (i % 2) * 548, 262 + Math.floor(i / 2) * 118)).join('\n')}
${thumb(boxes, 60, 510, 1068, 84)}
<text x="${WIDTH - 60}" y="88" ${SERIF} font-size="30" font-weight="600" text-anchor="end" fill="${colours.accent}">berth</text>
</svg>
`;
}

/** An approximate text width: badges are small, and fonts differ little. */
const widthOf = (text) => Math.round(7 * text.length + 14);

export function badgeSvg(size, state = 'fits') {
  const [left, right] = ['memory', bytes(size)];
  const [a, b] = [widthOf(left), widthOf(right)];
  const title = escape(`memory: ${exactBytes(size)}, planned by berth`);
  const text = (x, words) => `<text x="${x}" y="14" text-anchor="middle" ${FONT} font-size="11" fill="#fff">${escape(words)}</text>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${a + b}" height="20" role="img" aria-label="${title}"><title>${title}</title>
<clipPath id="r"><rect width="${a + b}" height="20" rx="3"/></clipPath>
<g clip-path="url(#r)"><rect width="${a}" height="20" fill="${colours.ink}"/><rect x="${a}" width="${b}" height="20" fill="${colours[state]}"/></g>
${text(a / 2, left)}${text(a + b / 2, right)}
</svg>
`;
}

/** The line for a README. */
export const badgeMarkdown = (file, size, link) => {
  const image = `![memory: ${bytes(size)}](${file})`;
  return link ? `[${image}](${link})` : image;
};

/** Boxes of a plan for the card: only the run, without the weights. */
export function boxesOf({ frames, buffers, span }) {
  if (frames.length === 0) return [];
  const [first, last] = [frames[0].step, frames.at(-1).step + 1];
  const across = Math.max(1, last - first);
  return buffers
    .filter(({ shares }) => shares === '')
    .map(({ group, birth, death, offset, size }) => {
      const from = Math.max(birth, first);
      return { group, box: [(from - first) / across, offset / span, (Math.min(death, last) - from) / across, size / span] };
    });
}
