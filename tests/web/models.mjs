/** Models to drop: real ones if available, and ONNX's own tests on any machine with libonnx-testdata. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const real = process.env.BERTH_MODELS ?? join(process.env.BERTH_SRC, '../shared/data/models');
const tests = '/usr/share/libonnx-testdata/data';

/** Files by the names of inputs (inputs.tsv: file, tab, name), or of outputs; none if the folder has no such list. */
function filesIn(folder, kind) {
  const list = join(folder, `${kind}.tsv`);
  if (!existsSync(list)) return {};
  const rows = readFileSync(list, 'utf8').split('\n').filter(Boolean).map((row) => row.split('\t'));
  return Object.fromEntries(rows.map(([file, name]) => [name, join(folder, file)]));
}

const noModels = 'there are no real models; BERTH_MODELS names a folder of them';
const noTests = 'libonnx-testdata is not installed';

/** `folder` contains the model, and the inputs unless `inputs` names a subfolder. */
function find({ title, folder, reason, inputs = '.', dims = {} }) {
  if (!existsSync(folder)) return { title, missing: reason };
  const name = readdirSync(folder).find((file) => file.endsWith('.onnx'));
  return { title, file: join(folder, name), inputs: filesIn(join(folder, inputs), 'inputs'), dims };
}

export const models = [
  { title: 'mnist_8, convolutional', folder: join(real, 'mnist_8'), reason: noModels },
  { title: 'light_squeezenet, convolutional', folder: join(real, 'light_squeezenet'), reason: noModels },
  { title: 'silero_vad_v5, with an LSTM', folder: join(real, 'silero_vad_v5'), reason: noModels,
    dims: { 'input.0': 1, 'input.1': 512, 'state.1': 1 } },
  { title: 'stories260K, with attention', folder: join(real, 'stories260K'), inputs: 'kv.decode_p127', reason: noModels,
    dims: { n: 1, t: 128, p: 127 } },
  { title: 'a convolution of ONNX', folder: join(tests, 'pytorch-converted/test_Conv2d_padding'), reason: noTests },
  { title: 'an LSTM of ONNX', folder: join(tests, 'node/test_lstm_with_initial_bias'), reason: noTests },
].map(find);

/** Real models with inputs and ONNX Runtime's outputs: { title, file, inputs, outputs }. */
export function casesWithOutputs() {
  const lists = existsSync(real) ? readdirSync(real, { recursive: true }).filter((path) => path.endsWith('outputs.tsv')) : [];
  return lists.sort().flatMap((list) => {
    const folder = join(real, dirname(list));
    const files = [folder, dirname(folder)].flatMap((place) =>
      readdirSync(place).filter((file) => file.endsWith('.onnx')).map((file) => join(place, file)));
    if (files.length === 0) return []; // larger ones are not stored
    return [{ title: dirname(list), file: files[0], inputs: filesIn(folder, 'inputs'), outputs: filesIn(folder, 'outputs') }];
  });
}
