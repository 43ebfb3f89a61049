/** ONNX models with weights in other files: finding the files, and damaged models. */
import { check, expect, expectEqual } from './tap.mjs';

const varint = (value) => (value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]);
const field = (number, given) => {
  const bytes = Buffer.from(given);
  return Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(bytes.length)]), bytes]);
};
const int = (number, value) => Buffer.from([...varint(number * 8), ...varint(value)]);
const message = (...fields) => Buffer.concat(fields);
const port = (name) => message(field(1, name), field(2, field(1, message(int(1, 1), field(2, field(1, int(1, 2)))))));
const weight = (name, location) => message(int(1, 2), int(2, 1), field(8, name),
  field(13, message(field(1, 'location'), field(2, location))), int(14, 1));
const node = (op, a, b, y) => message(field(1, a), field(1, b), field(2, y), field(4, op));

/** y = x v + w, two of each, with v in a/w.bin and w in b/w.bin. */
const model = message(int(1, 8), field(7, message(field(1, node('Mul', 'x', 'v', 'p')), field(1, node('Add', 'p', 'w', 'y')),
  field(2, 'line'), field(5, weight('v', 'a/w.bin')), field(5, weight('w', './b/w.bin')), field(11, port('x')),
  field(12, port('y')))), field(8, int(2, 13)));
const floats = (...list) => new Uint8Array(new Float32Array(list).buffer);
const v = floats(1, 2), w = floats(10, 20);

export async function checkExternal(berth, BerthError) {
  const line = async (files) => {
    const read = await berth.model(model, { files });
    const session = await read.session();
    try {
      return [...(await session.run({ x: new Float32Array([1, 1]) })).y.data];
    } finally {
      session.close();
      read.close();
    }
  };
  const fails = (promise) => promise.then(() => null, (error) => error);
  await check('weights in two files of the same name are told apart by their folders', async () => {
    for (const folder of ['', 'some/where/', 'C:\\some\\'])
      expectEqual(await line({ [`${folder}b/w.bin`]: w, [`${folder}a/w.bin`]: v }), [11, 22], `files in '${folder}'`);
    const error = await fails(line({ 'x/w.bin': v, 'y/w.bin': w }));
    expect(error instanceof BerthError && error.message.includes('a/w.bin'), `nobody can tell which is which: ${error}`);
  });
  await check('a damaged model with files is an error', async () => {
    for (let size = 0; size < model.length; size += 7)
      expect(await fails(berth.model(model.subarray(0, size), { files: { v } })) instanceof BerthError, `of ${size} bytes`);
    let deep = Buffer.alloc(0);
    for (let i = 0; i < 3000; i++) deep = field(1, field(5, field(6, deep)));
    expect(await fails(berth.model(field(7, deep), { files: { v } })) instanceof BerthError, 'graphs in graphs');
  });
}
