/** Names for the classes of an output: for kinds of models known by their shapes, or from a file. Pure functions. */
import { layoutOf } from './image.js';

const words = (text) => text.split(' ');

/** By the kind of the input, image or sound, and the number of classes. */
const known = [
  { what: 'digits', classes: 10, sides: [8, 28], channels: 1, labels: words('0 1 2 3 4 5 6 7 8 9') },
  { what: 'CIFAR-10', classes: 10, sides: [32], channels: 3, labels: words('airplane automobile bird cat deer dog frog horse ship truck') },
  { what: 'visual wake words', classes: 2, sides: [96], channels: 3, labels: ['no person', 'person'] },
];
const spoken = { what: 'speech commands', classes: 12, labels: words('down go left no off on right stop up yes silence unknown') };

const isSpoken = ({ shape }) => [49, 10].every((extent) => shape.includes(extent)) || shape.at(-1) === 490;

let given = null; // { name, labels } from a file

/** The lines of a file are the names, in order; an empty file removes them. */
export function takeLabels(name, text) {
  const labels = text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
  given = labels.length ? { name, labels } : null;
  return labels.length;
}

export const givenLabels = () => given;

const classesOf = ({ shape }) => shape.at(-1) ?? 0;

/** { what, labels } for an output of a model with these inputs; null if unknown. */
export function labelsFor(inputs, output) {
  const classes = classesOf(output);
  if (given?.labels.length === classes) return { what: given.name, labels: given.labels };
  if (inputs.length !== 1 || output.shape.slice(0, -1).some((extent) => extent !== 1)) return null;
  if (classes === spoken.classes && isSpoken(inputs[0])) return spoken;
  const picture = layoutOf({ ...inputs[0], shape: [...inputs[0].shape] });
  if (!picture || picture.height !== picture.width) return null;
  const fits = ({ classes: n, sides, channels }) => n === classes && sides.includes(picture.height) && channels === picture.channels;
  return known.find(fits) ?? null;
}
