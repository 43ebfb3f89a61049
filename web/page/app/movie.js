/** The harbour as a GIF: painted frame by frame beside the page, which stays responsive. */
import { save } from './dom.js';
import { fileName } from './format.js';
import { Gif, Palette } from './gif.js';
import { harbourColours, paintHarbour } from './play_draw.js';

const WIDTH = 720,
  HEIGHT = 400,
  TITLE = 34;
const MOST = 150; // frames
const SAMPLES = 6; // of them give the palette

const pause = () => new Promise((resolve) => setTimeout(resolve));

/** Times at which it is painted: some per step, so that buffers are seen coming. */
export function timesOf(steps) {
  const each = Math.max(1, Math.min(5, Math.floor(MOST / Math.max(1, steps))));
  const stride = Math.max(1, Math.ceil((steps * each) / MOST));
  const times = [];
  for (let i = 0; i < steps * each; i += stride) times.push((i + 1) / each - 0.001);
  return times;
}

function painter(title, scene) {
  const canvas = new OffscreenCanvas(WIDTH, HEIGHT);
  const context = canvas.getContext('2d', { willReadFrequently: true });
  const layer = new OffscreenCanvas(WIDTH, HEIGHT - TITLE);
  const colours = harbourColours();
  return (at) => {
    paintHarbour(layer.getContext('2d'), WIDTH, HEIGHT - TITLE, scene, at, colours);
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, WIDTH, HEIGHT);
    context.fillStyle = colours.ink;
    context.font = '600 16px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.fillText(title, 14, TITLE / 2 + 2);
    context.textAlign = 'right';
    context.fillText('berth', WIDTH - 14, TITLE / 2 + 2);
    context.textAlign = 'left';
    context.drawImage(layer, 0, TITLE);
    return context.getImageData(0, 0, WIDTH, HEIGHT).data;
  };
}

export async function saveMovie(name, title, scene, onProgress) {
  const paint = painter(title, { ...scene, chosen: null });
  const times = timesOf(scene.frames.length);
  const palette = new Palette();
  for (let i = 0; i < SAMPLES; i++) {
    palette.see(paint(times[Math.floor((i * (times.length - 1)) / (SAMPLES - 1))]));
    await pause();
  }
  palette.settle();
  const gif = new Gif(WIDTH, HEIGHT, palette.list);
  for (let i = 0; i < times.length; i++) {
    gif.add(palette.indices(paint(times[i])), i === times.length - 1 ? 1500 : 80);
    onProgress((i + 1) / times.length);
    await pause();
  }
  save(`${fileName(name)}.gif`, gif.end(), 'image/gif');
}
