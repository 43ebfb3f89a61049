/** Describes a file that is not a model, by its first bytes: a sentence, and advice. */

const starts = (...bytes) => (head) => bytes.every((byte, i) => byte === null || head[i] === byte);
const text = (start) => (head) => new TextDecoder('latin1').decode(head).trimStart().toLowerCase().startsWith(start);

const CONVERT = 'Export the model as ONNX first';

const kinds = [
  [
    text('version https://git-lfs'),
    'is a note that stands for the file, from Git LFS, and not the file itself',
    'Fetch the file itself: “git lfs pull”, or the download button of the site.',
  ],
  [text('<!doctype'), 'is a web page, not a model', 'The download went wrong: use the site’s download button.'],
  [text('<html'), 'is a web page, not a model', 'The download went wrong: use the site’s download button.'],
  [starts(0x89, 0x50, 0x4e, 0x47), 'is a picture (PNG), not a model', 'Pictures go into a model, below, as an input.'],
  [starts(0xff, 0xd8, 0xff), 'is a picture (JPEG), not a model', 'Pictures go into a model, below, as an input.'],
  [starts(0x47, 0x49, 0x46, 0x38), 'is a picture (GIF), not a model', 'Pictures go into a model, below, as an input.'],
  [starts(0x25, 0x50, 0x44, 0x46), 'is a PDF document, not a model', 'Choose an ONNX or GGUF file.'],
  [
    starts(0x50, 0x4b, 3, 4),
    'is a ZIP archive: a PyTorch or Keras model, or something packed',
    `Unpack it, or for PyTorch, export it with torch.onnx.export.`,
  ],
  [starts(0x1f, 0x8b), 'is packed (gzip)', 'Unpack it first.'],
  [starts(0x80, null, 0x7d), 'is a Python pickle, as PyTorch wrote it', `${CONVERT}: torch.onnx.export does.`],
  [starts(0x80, 2, 0x8a), 'is a Python pickle, as PyTorch wrote it', `${CONVERT}: torch.onnx.export does.`],
  [starts(0x89, 0x48, 0x44, 0x46), 'is an HDF5 file, as Keras writes it', `${CONVERT}: tf2onnx does.`],
  [starts(null, null, null, null, 0x54, 0x46, 0x4c, 0x33), 'is a TensorFlow Lite model', `${CONVERT}: tf2onnx does.`],
  [starts(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59), 'is an array (.npy), not a model', 'Arrays go into a model, below, as an input.'],
  [
    starts(null, null, null, null, null, null, 0, 0, 0x7b),
    'holds weights alone (safetensors)',
    'Choose it together with its graph in berth’s text form, or export the model as ONNX.',
  ],
  [text('{'), 'is a JSON file, not a model', 'Choose the ONNX or GGUF file that lies beside it.'],
];

/** `{ what, advice }` for a file that could not be opened; `advice` is undefined if there is none. */
export async function explain(file, error) {
  const name = `“${file.name}”`;
  if (file.size === 0) return { what: `${name} is empty.`, advice: 'Download or export it again.' };
  const head = new Uint8Array(await file.slice(0, 512).arrayBuffer());
  const isText = /^(\s*#[^\n]*\n)*\s*graph\s/.test(new TextDecoder('latin1').decode(head));
  if (isText) return { what: `${name} cannot be opened: ${error.message}`, advice: 'Mend the graph, and choose it again.' };
  const [, is, advice] = kinds.find(([matches]) => matches(head)) ?? [];
  if (is) return { what: `${name} ${is}.`, advice };
  if (error.status === 'MALFORMED' && /\.(onnx|gguf)$/i.test(file.name))
    return {
      what: `${name} is damaged, or a part of it is missing.`,
      advice: 'Often a download broke off: compare its size with the original’s, and download or export it again.',
    };
  if (error.status === 'MALFORMED' || /is not in a format that berth reads/.test(error.message))
    return { what: `${name} is not a model that berth can read.`, advice: 'berth opens ONNX and GGUF files.' };
  return { what: `${name} cannot be opened: ${error.message}`, advice: undefined };
}
