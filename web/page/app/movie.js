/** The animation as a GIF or a video: painted frame by frame without blocking the page. */
import { save } from './dom.js';
import { fileName } from './format.js';
import { Gif, Palette } from './gif.js';
import { harbourColours, paintHarbour } from './play_draw.js';

const WIDTH = 720,
  HEIGHT = 400,
  TITLE = 34;
const MOST = 150; // frames
const SAMPLES = 6; // of them determine the palette

const pause = () => new Promise((resolve) => setTimeout(resolve));

/** The times of frames: several per step, so that buffers are seen moving. */
export function timesOf(steps) {
  const each = Math.max(1, Math.min(5, Math.floor(MOST / Math.max(1, steps))));
  const stride = Math.max(1, Math.ceil((steps * each) / MOST));
  const times = [];
  for (let i = 0; i < steps * each; i += stride) times.push((i + 1) / each - 0.001);
  return times;
}

/** Returns a function that paints the scene at a time on a canvas. */
function painter(canvas, title, scene) {
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
    return context;
  };
}

const pixelsOf = (context) => context.getImageData(0, 0, WIDTH, HEIGHT).data;

export async function saveMovie(name, title, scene, onProgress) {
  const picture = painter(new OffscreenCanvas(WIDTH, HEIGHT), title, { ...scene, chosen: null });
  const paint = (at) => pixelsOf(picture(at));
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

const FRAME = 40; // milliseconds
const HOLD = 1200; // after the end
const BITS = 4e6; // per second
const KINDS = ['video/webm;codecs=vp9', 'video/webm', 'video/mp4'];

/** A kind of video that this browser can record; undefined: none. */
export const videoKind = () =>
  typeof MediaRecorder === 'function' && HTMLCanvasElement.prototype.captureStream
    ? KINDS.find((kind) => MediaRecorder.isTypeSupported(kind))
    : undefined;

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Records the animation in real time: `each` milliseconds per step, as it plays. */
export async function saveVideo(name, title, scene, each, onProgress) {
  const canvas = Object.assign(document.createElement('canvas'), { width: WIDTH, height: HEIGHT });
  const paint = painter(canvas, title, { ...scene, chosen: null });
  const kind = videoKind();
  if (!kind) throw new Error('this browser records no video of a canvas');
  const stream = canvas.captureStream();
  const recorder = new MediaRecorder(stream, { mimeType: kind, videoBitsPerSecond: BITS });
  const parts = [];
  recorder.addEventListener('dataavailable', ({ data }) => parts.push(data));
  const ended = new Promise((resolve, reject) => {
    recorder.addEventListener('stop', resolve);
    recorder.addEventListener('error', ({ error }) => reject(error ?? new Error('the video could not be recorded')));
  });
  const steps = scene.frames.length;
  const whole = steps * each;
  const begin = performance.now();
  paint(0);
  recorder.start();
  for (let now = 0; now < whole + HOLD; now = performance.now() - begin) {
    paint(Math.min(steps - 0.001, now / each));
    onProgress(Math.min(1, now / (whole + HOLD)));
    await wait(FRAME);
  }
  recorder.stop();
  await ended;
  for (const track of stream.getTracks()) track.stop();
  save(`${fileName(name)}.${kind.includes('mp4') ? 'mp4' : 'webm'}`, parts, kind.split(';')[0]);
}
