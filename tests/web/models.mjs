/** Models to drop: real ones where they are at hand, and ONNX's own tests on any machine with libonnx-testdata. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const real = process.env.BERTH_MODELS ?? join(process.env.BERTH_SRC, '../shared/data/models');
const tests = '/usr/share/libonnx-testdata/data';

/** Inputs as files, where the folder has them (inputs.tsv: file, tab, name). */
function inputsIn(folder) {
  const list = join(folder, 'inputs.tsv');
  if (!existsSync(list)) return {};
  const rows = readFileSync(list, 'utf8').split('\n').filter(Boolean).map((row) => row.split('\t'));
  return Object.fromEntries(rows.map(([file, name]) => [name, join(folder, file)]));
}

const noModels = 'there are no real models; BERTH_MODELS names a folder of them';
const noTests = 'libonnx-testdata is not installed';

/** `folder` has the model, and the inputs unless `inputs` names another one below it. */
function find({ title, folder, reason, inputs = '.', dims = {} }) {
  if (!existsSync(folder)) return { title, missing: reason };
  const name = readdirSync(folder).find((file) => file.endsWith('.onnx'));
  return { title, file: join(folder, name), inputs: inputsIn(join(folder, inputs)), dims };
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
