/** The camera as an input: single pictures or a sequence. */
import { el } from './dom.js';
import { fault } from './fault.js';

const video = el('video', { class: 'camera', playsinline: true, 'data-test': 'camera', 'aria-label': 'What the camera sees' });
video.muted = true;
let stream = null;
let live = false;
let runNow = async () => {};

const why = {
  NotAllowedError: 'this page may not use it; allow it beside the address',
  NotFoundError: 'there is none',
  NotReadableError: 'another program has it',
};

export const hasCamera = () => Boolean(navigator.mediaDevices?.getUserMedia);

async function start() {
  if (stream?.active) return;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment', width: { ideal: 640 } } });
  } catch (error) {
    throw fault('INVALID', `the camera cannot be used: ${why[error.name] ?? error.message}`);
  }
  video.srcObject = stream;
  await video.play();
}

export function stopCamera() {
  live = false;
  stream?.getTracks().forEach((track) => track.stop());
  stream = null;
  video.srcObject = null;
}

/** The current picture, for createImageBitmap. */
export async function cameraPicture() {
  await start();
  if (video.readyState < 2) await new Promise((resolve) => video.addEventListener('loadeddata', resolve, { once: true }));
  return video;
}

/** The part of an input's editor that shows the camera; `onProblem` receives errors. */
export function cameraPart(onProblem) {
  const again = el('button', { type: 'button', 'data-test': 'camera-live', 'aria-pressed': 'false', text: 'Run again and again' });
  again.addEventListener('click', async () => {
    live = !live;
    again.setAttribute('aria-pressed', String(live));
    again.textContent = live ? 'Stop' : 'Run again and again';
    while (live && again.isConnected) live = (await runNow()) && live;
    live = false;
    again.setAttribute('aria-pressed', 'false');
    again.textContent = 'Run again and again';
  });
  const part = el('span', { class: 'camera-part', 'data-for': 'camera' }, again);
  const show = () => {
    part.prepend(video);
    start().catch(onProblem);
  };
  return { part, show };
}

/** `run()` runs once; returns whether it succeeded. */
export function watchCamera(run) {
  runNow = run;
}
