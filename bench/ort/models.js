'use strict';
// Writes models of well-known architectures with seeded random weights, for speed and memory:
//   node models.js FOLDER [--small] [NAME...]
// Each becomes FOLDER/NAME/NAME.onnx with its inputs (inputs.tsv and .npy files) in the same folder.
const fs = require('fs');
const path = require('path');
const large = require('./networks.js');
const small = require('./small.js');
const npy = require('../../tests/onnx/ort/npy.js');
const {Graph, Random} = require('./onnx.js');

const OPSET = 17;
const networks = {...large, ...small};
const NAMES = Object.keys(large), SMALL_NAMES = Object.keys(small);

function makeInput({type, dims, limit = 1, offset = 0}, random) {
  const count = dims.reduce((a, b) => a * b, 1);
  if (type === 'float32') return {type, dims, bytes: npy.bytesOf(random.floats(count, 1))};
  const numbers = BigInt64Array.from({length: count}, () => BigInt(offset + Math.floor(random.next() * limit)));
  return {type, dims, bytes: npy.bytesOf(numbers)};
}

function writeModel(folder, name, isSmall) {
  const {build, full, small: reduced} = networks[name];
  const graph = new Graph(name, 1), random = new Random(2);
  const inputs = build(graph, isSmall ? reduced : full);
  const place = path.join(folder, name);
  fs.mkdirSync(place, {recursive: true});
  graph.write(path.join(place, `${name}.onnx`), OPSET);
  inputs.forEach((input, i) => npy.save(path.join(place, `in_${i}.npy`), makeInput(input, random)));
  fs.writeFileSync(path.join(place, 'inputs.tsv'), inputs.map(({name: n}, i) => `in_${i}.npy\t${n}\n`).join(''));
}

// Existing models are kept.
function makeModels(folder, names, isSmall) {
  for (const name of names) {
    if (!(name in networks)) throw new Error(`no model is called ${name}; there are ${Object.keys(networks).join(', ')}`);
    if (!fs.existsSync(path.join(folder, name, 'inputs.tsv'))) writeModel(folder, name, isSmall);
  }
}

function main(argv) {
  const isSmall = argv.includes('--small');
  const [folder, ...names] = argv.filter((a) => a !== '--small');
  if (!folder || folder.startsWith('-')) throw new Error('usage: node models.js FOLDER [--small] [NAME...]');
  makeModels(folder, names.length ? names : NAMES, isSmall);
}

if (require.main === module) {
  try {
    main(process.argv.slice(2));
  } catch (error) {
    console.error(`models: ${error.message}`);
    process.exitCode = 1;
  }
}
module.exports = {makeModels, NAMES, SMALL_NAMES};
