'use strict';
// The cases below a place: a model, and the list of its inputs (inputs.tsv, a line an input: file, tab, name) where
// there is one, beside the model or in a folder below it.
const fs = require('fs');
const path = require('path');

function listFolder(folder) {
  const entries = fs.readdirSync(folder, {withFileTypes: true}).sort((a, b) => (a.name < b.name ? -1 : 1));
  const models = entries.filter((e) => e.isFile() && e.name.endsWith('.onnx')).map((e) => path.join(folder, e.name));
  const below = entries.filter((e) => e.isDirectory()).map((e) => path.join(folder, e.name));
  const lists = [folder, ...below].map((f) => path.join(f, 'inputs.tsv')).filter((f) => fs.existsSync(f));
  const cases = models.flatMap((model) => (lists.length ? lists.map((list) => ({model, list})) : [{model}]));
  return cases.concat(below.flatMap(listFolder));
}

function listCases(place) {
  return fs.statSync(place).isDirectory() ? listFolder(place) : [{model: place}];
}

function nameOf({model, list}) {
  const folder = list ? path.dirname(list) : path.dirname(model);
  const file = path.basename(model, '.onnx');
  return path.basename(folder) === file ? file : `${path.basename(folder)}/${file}`;
}

// The files of a case's inputs by the inputs' names.
function readList(list) {
  const lines = fs.readFileSync(list, 'utf8').split('\n').filter((line) => line.includes('\t'));
  return new Map(lines.map((line) => {
    const [file, name] = line.split('\t');
    return [name, path.join(path.dirname(list), file)];
  }));
}

module.exports = {listCases, nameOf, readList};
