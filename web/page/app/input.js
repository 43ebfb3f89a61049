/** One input of a run: how its elements are generated, or the file with them. */
import { el } from './dom.js';
import { fault } from './fault.js';
import { count, typeOf } from './format.js';
import { fitArray, readNpy } from './npy.js';
import { imageElements, layoutOf, scales } from './image.js';
import { cameraPart, cameraPicture, hasCamera, stopCamera } from './camera.js';

const option = (value, text) => el('option', { value, text });

export class InputEditor {
  #file = null; // the original file: shapes may change later
  #fill;
  #seed;
  #constant;
  #scale;
  #given;
  #camera = null;

  /** `onArray(name, shape)` is called for an array with another shape than the input's current one. */
  constructor(input, id, onProblem, onArray) {
    this.input = input;
    this.onProblem = onProblem;
    this.onArray = onArray;
    const image = layoutOf(input) !== null;
    this.#fill = el(
      'select',
      { id: `fill-${id}`, 'data-test': 'fill' },
      option('random', 'random'),
      option('zeros', 'zeros'),
      option('constant', 'one number'),
      option('file', image ? 'a .npy file or a picture' : 'a .npy file'),
      image && hasCamera() ? option('camera', 'the camera') : null,
    );
    this.#camera = image && hasCamera() ? cameraPart(onProblem) : null;
    this.#seed = el('input', { type: 'number', min: 0, step: 1, value: 0, inputmode: 'numeric', 'data-test': 'seed' });
    this.#constant = el('input', { type: 'number', step: 'any', value: input.value ?? 1, 'data-test': 'constant' });
    if (input.value !== undefined) this.#fill.value = 'constant'; // a mask, or a setting that the model expects
    this.#scale = el(
      'select',
      { 'data-test': 'scale' },
      ...Object.entries(scales).map(([key, { title }]) => option(key, title)),
    );
    this.#given = el('span', { class: 'hint', 'data-test': 'given', role: 'status' });
    const file = el('input', {
      type: 'file',
      id: `file-${id}`,
      class: 'file',
      'data-test': 'input-file',
      accept: image ? '.npy,image/*' : '.npy',
    });
    const labelled = (title, field, fill) => el('label', { class: 'inline', 'data-for': fill }, `${title} `, field);

    this.element = el(
      'fieldset',
      { class: 'input', 'data-test': `input-${input.name}` },
      el(
        'legend',
        {},
        el('b', { class: 'mono', text: input.name }),
        ' ',
        el('span', { class: 'hint', text: typeOf(input) }),
        input.below === undefined ? null : el('span', { class: 'hint', text: `, below ${count(input.below)}` }),
      ),
      labelled('fill with', this.#fill),
      labelled('seed', this.#seed, 'random'),
      labelled('number', this.#constant, 'constant'),
      el(
        'span',
        { class: 'inline', 'data-for': 'file' },
        el('label', { class: 'button', for: `file-${id}`, text: 'Choose' }),
        file,
        ' ',
        this.#given,
      ),
      image ? labelled('as', this.#scale, 'file camera') : null,
      this.#camera?.part,
    );
    this.#fill.addEventListener('change', () => {
      if (this.#camera && this.#fill.value !== 'camera') stopCamera();
      this.#show();
    });
    file.addEventListener('change', () => {
      this.#take(file.files[0]);
      file.value = '';
    });
    this.#watchDrop();
    this.#show();
  }

  #watchDrop() {
    const { element } = this;
    element.addEventListener('dragover', (event) => {
      event.preventDefault();
      element.classList.add('over');
    });
    element.addEventListener('dragleave', () => element.classList.remove('over'));
    element.addEventListener('drop', (event) => {
      element.classList.remove('over');
      const file = event.dataTransfer.files[0];
      if (!file) return;
      event.preventDefault();
      event.stopPropagation(); // otherwise the page would open it as a model
      this.#take(file);
    });
  }

  #show() {
    for (const part of this.element.querySelectorAll('[data-for]')) part.hidden = !part.dataset.for.split(' ').includes(this.#fill.value);
    if (this.#fill.value === 'camera') this.#camera.show();
    this.#given.textContent = this.#file?.name ?? 'none yet; or drop it here';
  }

  #take(file) {
    if (!file) return;
    this.#file = file;
    this.#fill.value = 'file';
    this.#show();
    this.#look(file).then(() => this.onProblem(null), this.onProblem);
  }

  /** Whether a file is suitable. An array of another shape may change the input's. */
  async #look(file) {
    if (file.name.endsWith('.npy')) {
      const { shape } = readNpy(await file.arrayBuffer());
      if (String(shape) !== String(this.input.shape)) this.onArray?.(this.input.name, shape);
      if (!this.element.isConnected) return; // another editor has replaced it
    }
    await this.spec();
  }

  /** The choice, for a new editor of the same input after the shapes have changed. */
  get choice() {
    return {
      fill: this.#fill.value,
      seed: this.#seed.value,
      constant: this.#constant.value,
      scale: this.#scale.value,
      file: this.#file,
    };
  }

  set choice(choice) {
    this.#fill.value = choice.fill;
    this.#seed.value = choice.seed;
    this.#constant.value = choice.constant;
    this.#scale.value = choice.scale;
    this.#file = choice.file;
    this.#show();
  }

  /** The description sent to the worker. */
  async spec() {
    const fill = this.#fill.value;
    if (fill === 'random')
      return { fill, seed: Math.max(0, Math.trunc(Number(this.#seed.value) || 0)), below: this.input.below };
    if (fill === 'constant') return { fill, value: Number(this.#constant.value) || 0 };
    if (fill === 'zeros') return { fill };
    const { input } = this;
    if (fill === 'camera') return { data: await imageElements(await cameraPicture(), input, this.#scale.value) };
    if (!this.#file) throw fault('INVALID', `input '${input.name}' waits for a file`);
    const isArray = this.#file.name.endsWith('.npy');
    if (isArray) return { data: fitArray(readNpy(await this.#file.arrayBuffer()), input) };
    if (!layoutOf(input))
      throw fault('INVALID', `input '${input.name}' takes a .npy file; it does not have the shape of a picture`);
    try {
      return { data: await imageElements(this.#file, input, this.#scale.value) };
    } catch {
      throw fault('MALFORMED', `'${this.#file.name}' is neither a .npy file nor a picture that this browser reads`);
    }
  }
}
