/** Sources of a network: a file that is dropped or chosen, or a sample. */
import { $, el } from './dom.js';

export const samples = [
  {
    id: 'digits',
    title: 'Digits',
    what: 'convolutions, trained; it ships with berth',
    source: { builtIn: true, name: 'digits' },
    dims: { batch: 1 },
  },
  { id: 'encoder', title: 'Transformer', what: 'four encoder layers, the sequence is open', dims: { seq: 128 } },
  {
    id: 'unet',
    title: 'U-Net',
    what: 'skips that outlive the middle, the size is open',
    dims: { height: 128, width: 128 },
  },
  {
    id: 'mobilenet',
    title: 'MobileNet',
    what: 'MobileNetV2; drag its memory down and see the price',
    dims: { height: 224, width: 224 },
  },
  { id: 'keywords', title: 'Keywords', what: 'words in a second of speech; it fits a Pico', dims: {} },
  { id: 'resnet', title: 'ResNet-8', what: 'pictures of 32 by 32, also from the camera', dims: {} },
  { id: 'lstm', title: 'LSTM', what: 'two layers in both directions over open frames', dims: { frames: 64, batch: 1 } },
  {
    id: 'tale',
    title: 'Tale',
    what: 'a language model of 113 KiB that tells stories',
    source: { url: new URL('../samples/tale.gguf', import.meta.url).href, name: 'tale' },
  },
].map((sample) => ({
  source: { url: new URL(`../samples/${sample.id}.berth`, import.meta.url).href, name: sample.id },
  ...sample,
}));

const MODEL = /\.(onnx|gguf|berth)$/i; // among several files, the one that refers to the others

/** `open(source, dims)` is called with the choice; `dims` are initial values of the fields. */
export function showSources(open) {
  const choose = (files) => {
    const list = [...files].sort((a, b) => (a.name < b.name ? -1 : 1)); // the first part of a split model comes first
    const weights = list.find(({ name }) => name.endsWith('.safetensors'));
    const file = list.find(({ name }) => MODEL.test(name)) ?? list.find((one) => one !== weights) ?? weights;
    if (!file) return;
    const beside = list.filter((one) => one !== file && one !== weights);
    open({
      file,
      name: file.name,
      weights: file === weights ? undefined : weights,
      files: Object.fromEntries(beside.map((one) => [one.name, one])),
    });
  };
  $('samples').replaceChildren(
    ...samples.map(({ id, title, what, source, dims }) =>
      el(
        'li',
        {},
        el(
          'button',
          { type: 'button', class: 'sample', 'data-test': `sample-${id}`, onclick: () => open(source, dims) },
          el('strong', { text: title }),
          el('span', { class: 'hint', text: what }),
        ),
      ),
    ),
  );

  $('file').addEventListener('change', ({ target }) => {
    choose(target.files);
    target.value = ''; // allows choosing the same file again
  });

  const early = [...window.berthDropped, ...$('file').files];
  window.berthListens();
  if (early.length > 0) choose(early);

  const drop = $('drop');
  let depth = 0;
  const light = (step) => {
    depth = Math.max(0, depth + step);
    drop.classList.toggle('over', depth > 0);
  };
  const hasFiles = (event) => event.dataTransfer?.types.includes('Files');
  addEventListener('dragenter', (event) => hasFiles(event) && light(1));
  addEventListener('dragleave', (event) => hasFiles(event) && light(-1));
  // The whole page accepts files, so that a near miss does not leave the page; inputs handle theirs before this.
  addEventListener('dragover', (event) => hasFiles(event) && event.preventDefault());
  addEventListener('drop', (event) => {
    depth = 0;
    light(0);
    if (!hasFiles(event)) return;
    event.preventDefault();
    choose(event.dataTransfer.files);
  });
}

/** Marks the sample that is open. */
export function markSource(source) {
  for (const button of $('samples').querySelectorAll('button')) {
    const own = samples.find((sample) => button.dataset.test === `sample-${sample.id}`);
    button.setAttribute('aria-pressed', String(own.source === source));
  }
}
