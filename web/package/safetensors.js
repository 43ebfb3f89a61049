/* Tensors by name as a safetensors file. */
const ALIGNED = 64; // alignment of the data, which follows the header and its length

const bytesOf = ({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength);

/** `tensors`: { name: { type, shape, data } }. */
export function writeSafetensors(tensors) {
  let size = 0;
  const entries = Object.entries(tensors).map(([name, { type, shape, data }]) => {
    const begin = size;
    size += data.byteLength;
    return [name, { dtype: type.toUpperCase(), shape, data_offsets: [begin, size] }];
  });
  const header = new TextEncoder().encode(JSON.stringify(Object.fromEntries(entries)));
  const length = Math.ceil((8 + header.length) / ALIGNED) * ALIGNED - 8;
  const file = new Uint8Array(8 + length + size).fill(0x20, 8, 8 + length);
  new DataView(file.buffer).setBigUint64(0, BigInt(length), true);
  file.set(header, 8);
  let at = 8 + length;
  for (const tensor of Object.values(tensors)) {
    file.set(bytesOf(tensor), at);
    at += tensor.data.byteLength;
  }
  return file;
}
