/**
 * An animated plan: buffers come to the quay and leave it, step by step, with a scrubber and the contents of a buffer.
 */
import { el, sharpen } from './dom.js';
import { bytes, count, exactBytes, percent, typeOf } from './format.js';
import { framesOf } from './play_frames.js';
import { bufferAt, harbourColours, paintHarbour } from './play_draw.js';

const WHOLE = 6000; // milliseconds from the first step to the last,
const QUICK = 90; // but a step takes at least this,
const SLOW = 420; // and at most this

const still = matchMedia('(prefers-reduced-motion: reduce)');

const VIEWS = /^(reshape|squeeze|unsqueeze|flatten|identity)$/;

/** The contents of a buffer: its step's result or, for a view, that of its source. */
function tensorOf(made, { name, op, shape, shares }) {
  const whole = made.get(shares);
  return made.get(name) ?? (VIEWS.test(op) && whole ? { ...whole, name, shape } : undefined);
}

export class Harbour {
  #root;
  #canvas;
  #scrubber;
  #button;
  #says;
  #detail;
  #scene = null;
  #at = 0; // frame, plus a fraction of the next
  #last = 0;
  #rounds = 0; // remaining repetitions
  #due = false;
  #name = '';
  #look; // () => a promise of the steps' results, by name

  /** `look()` returns a promise of a run's tensors, by name; `onChoose(name)` is called for clicks. */
  constructor(root, { look = null, onChoose = () => {} } = {}) {
    this.#root = root;
    this.#look = look;
    this.onChoose = onChoose;
    this.#build();
    this.#watch();
  }

  #build() {
    const { id } = this.#root;
    this.#canvas = el('canvas', {
      class: 'harbour',
      tabindex: 0,
      role: 'application',
      'data-test': `${id}-canvas`,
      'aria-label': 'The block of memory: buffers that are alive at a step. Arrow keys go from buffer to buffer',
    });
    this.#button = el('button', { type: 'button', class: 'play-button', 'data-test': `${id}-button`, text: 'Play' });
    this.#scrubber = el('input', { type: 'range', min: 0, step: 1, value: 0, 'data-test': `${id}-scrubber`, 'aria-label': 'Step' });
    this.#says = el('p', { class: 'play-says hint', 'data-test': `${id}-says` });
    this.#detail = el('div', { class: 'play-detail', 'data-test': `${id}-detail`, role: 'status' });
    const gif = el('button', { type: 'button', class: 'quiet', 'data-test': `${id}-gif`, text: 'Save as GIF' });
    const video = el('button', { type: 'button', class: 'quiet', 'data-test': `${id}-video`, text: 'as video' });
    const saving = (button, make) => button.addEventListener('click', () => this.#save([gif, video], make));
    saving(gif, ({ saveMovie }, title, tell) => saveMovie(this.#name, title, this.#scene, tell));
    saving(video, ({ saveVideo }, title, tell) => saveVideo(this.#name, title, this.#scene, this.#each(), tell));
    video.hidden = typeof MediaRecorder !== 'function';
    this.#root.replaceChildren(
      this.#canvas,
      el('div', { class: 'play-controls' }, this.#button, this.#scrubber, el('span', { class: 'play-save' }, gif, video)),
      this.#says,
      this.#detail,
    );
  }

  #watch() {
    this.#button.addEventListener('click', () => (this.playing ? this.pause() : this.play(1)));
    this.#scrubber.addEventListener('input', () => {
      this.pause();
      this.#goTo(Number(this.#scrubber.value) + 0.999);
    });
    this.#canvas.addEventListener('click', (event) => {
      const box = this.#canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      if (this.#scene) this.choose(bufferAt(this.#scene, this.#at, box.width, box.height, x, y));
    });
    this.#canvas.addEventListener('keydown', (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!this.#scene || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === ' ') this.#button.click();
      else if (event.key === 'Escape') this.choose(null);
      else if (step) this.#chooseNext(step);
      else return;
      event.preventDefault();
    });
    new ResizeObserver(() => this.#repaint()).observe(this.#canvas);
    addEventListener('themechange', () => this.#repaint());
  }

  #frame() {
    return this.#scene.frames[Math.min(this.#scene.frames.length - 1, Math.floor(this.#at))];
  }

  #chooseNext(step) {
    this.pause();
    const alive = [...this.#frame().alive].sort((a, b) => a.offset - b.offset);
    const at = alive.indexOf(this.#scene.chosen);
    this.choose(alive[at < 0 ? 0 : (at + step + alive.length) % alive.length] ?? null);
  }

  /** Another plan; shows its fullest moment until it plays. */
  show(plan, name) {
    this.#name = name;
    const scene = framesOf(plan);
    this.#scene = { ...scene, chosen: null };
    this.#root.hidden = scene.frames.length === 0;
    this.#scrubber.max = Math.max(0, scene.frames.length - 1);
    this.#root.dataset.steps = scene.frames.length;
    this.#root.dataset.grown = scene.grown;
    this.#showDetail(null);
    const fullest = scene.frames.findIndex(({ bytes: n }) => n === scene.peak);
    if (!this.playing) this.#goTo(fullest + 0.999);
  }

  get playing() {
    return this.#rounds > 0;
  }

  /** From the beginning if it is at the end. */
  play(rounds) {
    if (!this.#scene) return;
    if (!this.playing && this.#at >= this.#scene.frames.length - 0.01) this.#at = 0;
    const begin = !this.playing;
    this.#rounds = Math.max(this.#rounds, rounds);
    this.#mark();
    if (!begin) return;
    this.#last = performance.now();
    requestAnimationFrame((now) => this.#tick(now));
  }

  /** Starts by itself, from the beginning: not for users who prefer reduced motion. */
  replay(rounds = 1) {
    if (still.matches || !this.#scene || document.hidden) return;
    this.#at = 0;
    this.play(rounds);
  }

  pause() {
    this.#rounds = 0;
    this.#mark();
  }

  #mark() {
    this.#root.toggleAttribute('data-playing', this.playing);
    this.#button.textContent = this.playing ? 'Pause' : 'Play';
  }

  /** Milliseconds per step. */
  #each() {
    return Math.min(SLOW, Math.max(QUICK, WHOLE / Math.max(1, this.#scene.frames.length)));
  }

  #tick(now) {
    if (!this.playing) return;
    const { frames } = this.#scene;
    this.#goTo(this.#at + Math.min(100, Math.max(0, now - this.#last)) / this.#each()); // it may precede the request
    this.#last = now;
    if (this.#at >= frames.length) {
      this.#rounds--;
      if (this.playing) this.#at = 0;
      else return this.#end();
    }
    requestAnimationFrame((next) => this.#tick(next));
    return undefined;
  }

  #end() {
    this.#goTo(this.#scene.frames.length - 0.001);
    this.#mark();
  }

  #goTo(at) {
    this.#at = at;
    const { frames } = this.#scene;
    if (frames.length === 0) return;
    const index = Math.min(frames.length - 1, Math.floor(at));
    const { op, name, bytes: alive } = frames[index];
    if (this.#root.dataset.step !== String(index)) {
      this.#root.dataset.step = index;
      this.#root.dataset.alive = alive;
      this.#scrubber.value = index;
      this.#scrubber.setAttribute('aria-valuetext', `step ${index + 1}, ${op}, ${bytes(alive)} alive`);
      this.#says.textContent = `step ${index + 1} of ${count(frames.length)}: ${op}${name && name !== op ? `, ${name}` : ''}`;
    }
    this.#repaint();
  }

  #repaint() {
    if (this.#due || !this.#scene) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      const { width, height } = this.#canvas.getBoundingClientRect();
      if (width === 0) return;
      const context = sharpen(this.#canvas, width, height);
      paintHarbour(context, width, height, this.#scene, this.#at, harbourColours());
    });
  }

  choose(buffer) {
    this.pause();
    this.#scene.chosen = buffer;
    this.#root.dataset.chosen = buffer?.name ?? '';
    this.#showDetail(buffer);
    if (buffer) this.onChoose(buffer.name);
    this.#repaint();
  }

  async #showDetail(buffer) {
    if (!buffer) {
      this.#detail.replaceChildren(el('p', { class: 'hint', text: 'Click a buffer to see what is in it.' }));
      return;
    }
    const facts = el(
      'p',
      {},
      el('b', { class: 'mono', text: buffer.name }),
      el('span', { class: 'hint', text: ` ${typeOf(buffer)} · ${exactBytes(buffer.size)}` }),
      buffer.shares ? el('span', { class: 'hint', text: ` · in the place of ${buffer.shares}` }) : null,
    );
    this.#detail.replaceChildren(facts);
    if (!this.#look || buffer.kind === 'scratch') return;
    try {
      const [made, { tensorView }] = await Promise.all([this.#look(), import('./tensor.js')]);
      const tensor = tensorOf(made, buffer);
      if (this.#scene.chosen !== buffer) return;
      if (tensor) this.#detail.replaceChildren(tensorView(tensor), facts);
      else this.#detail.append(el('p', { class: 'hint', text: 'What is in it cannot be seen here.' }));
      this.#root.dataset.seen = tensor ? buffer.name : '';
    } catch (error) {
      if (this.#scene.chosen === buffer) this.#detail.append(el('p', { class: 'hint', text: error.message }));
    }
  }

  async #save(buttons, make) {
    if (!this.#scene) return;
    this.pause();
    const words = this.#says.textContent;
    for (const each of buttons) each.disabled = true;
    try {
      const title = `${this.#name}: ${bytes(this.#scene.peak)} instead of ${bytes(this.#scene.grown)}`;
      await make(await import('./movie.js'), title, (share) => {
        this.#says.textContent = `Saving it: ${percent(share)}`;
      });
      this.#says.textContent = words;
    } catch (error) {
      this.#says.textContent = `It could not be saved: ${error.message}`;
    } finally {
      for (const each of buttons) each.disabled = false;
    }
  }
}
