/** Arrays as .npy files: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1 to 3. */
import { fault } from './fault.js';
import { arrayOf, countOf, reader, writer } from '../common/types.js';

const types = {
  f4: 'f32',
  f8: 'f64',
  f2: 'f16',
  i1: 'i8',
  u1: 'u8',
  i2: 'i16',
  u2: 'u16',
  i4: 'i32',
  u4: 'u32',
  i8: 'i64',
  u8: 'u64',
  b1: 'bool',
};
const wrong = (message) => fault('MALFORMED', message);

/** The header is a Python dictionary with three known entries. */
function parseHeader(text) {
  const descr = /'descr':\s*'([<>|=])(\w\d+)'/.exec(text);
  const fortran = /'fortran_order':\s*(True|False)/.exec(text);
  const shape = /'shape':\s*\(([\d,\s]*)\)/.exec(text);
  if (!descr || !fortran || !shape)
    throw wrong('the header of this .npy file cannot be read: plain arrays of numbers are');
  if (!types[descr[2]])
    throw wrong(`this .npy file holds elements of type '${descr[1]}${descr[2]}', which is none of berth's`);
  if (descr[1] === '>')
    throw wrong(
      'this .npy file has the most significant byte first; save it on a machine of today, or with .astype("<f4")',
    );
  if (fortran[1] === 'True') throw wrong('this .npy file is in Fortran order; save it with numpy.ascontiguousarray');
  return {
    type: types[descr[2]],
    shape: shape[1]
      .split(',')
      .filter((s) => s.trim())
      .map(Number),
  };
}

export function readNpy(buffer) {
  const bytes = new Uint8Array(buffer);
  const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
  if (bytes.length < 12 || magic.some((byte, i) => bytes[i] !== byte)) throw wrong('this is not a .npy file');
  const view = new DataView(buffer);
  const [start, length] = bytes[6] === 1 ? [10, view.getUint16(8, true)] : [12, view.getUint32(8, true)];
  if (start + length > bytes.length) throw wrong('this .npy file ends inside its header');
  const { type, shape } = parseHeader(new TextDecoder('latin1').decode(bytes.subarray(start, start + length)));
  const Elements = arrayOf(type);
  const need = countOf(shape) * Elements.BYTES_PER_ELEMENT;
  if (bytes.length - start - length !== need)
    throw wrong(
      `this .npy file should hold ${need} bytes for its shape [${shape.join(', ')}], and holds ${bytes.length - start - length}`,
    );
  return { type, shape, data: new Elements(buffer.slice(start + length)) };
}

/** The parts of a file. bf16 becomes f32, since .npy has no bf16. */
export function writeNpy({ type, shape, data }) {
  const stored = type === 'bf16' ? Float32Array.from(data, reader('bf16')) : data;
  const code = Object.entries(types).find(([, own]) => own === (type === 'bf16' ? 'f32' : type))[0];
  const order = code.endsWith('1') ? '|' : '<';
  const tuple = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const text = `{'descr': '${order}${code}', 'fortran_order': False, 'shape': (${tuple}), }`;
  const length = Math.ceil((10 + text.length + 1) / 64) * 64 - 10;
  const header = new Uint8Array(10 + length).fill(0x20);
  header.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, length & 255, length >> 8]);
  header.set(new TextEncoder().encode(text), 10);
  header[header.length - 1] = 0x0a;
  return [header, stored];
}

/** Converts an array to an input's type if no information is lost: bf16 accepts f32. */
export function fitArray(array, input) {
  const same = array.shape.length === input.shape.length && array.shape.every((extent, i) => extent === input.shape[i]);
  if (!same)
    throw fault(
      'INVALID',
      `input '${input.name}' has the shape [${input.shape.join(', ')}], and the file has [${array.shape.join(', ')}]`,
    );
  if (array.type === input.type) return array.data;
  if (input.type === 'bf16' && array.type === 'f32') return Uint16Array.from(array.data, writer('bf16'));
  throw fault('INVALID', `input '${input.name}' has elements of type ${input.type}, and the file has ${array.type}`);
}
