/** Numbers in readable form. */

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const count = (n) => whole.format(n);

/** "1 node", "2 nodes", "1 byte", "0 runs" */
export const amount = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** "4 KiB", "1.5 MiB", "113 KiB": rounded; exactBytes has all digits */
export function bytes(n) {
  if (n < 1024) return `${whole.format(n)} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let unit = -1;
  let size = n;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${size.toFixed(size < 9.95 && !Number.isInteger(size) ? 1 : 0)} ${units[unit]}`;
}

/** "4,096 bytes" */
export const exactBytes = (n) => amount(n, 'byte');

/** A power of two of bytes, of which at most `most` fit into a span. */
export function roundBytes(span, most) {
  let step = 1;
  while (span / step > most) step *= 2;
  return step;
}

/** A browser's clock may have a resolution of a millisecond, so short runs may take 0. */
export function milliseconds(ms) {
  if (ms <= 0) return 'under 1 ms';
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  if (ms >= 100) return `${ms.toFixed(0)} ms`;
  return `${ms.toFixed(ms >= 10 ? 1 : ms >= 1 ? 2 : 3)} ms`;
}

/** Four significant digits, without an exponent if that is readable. */
export function number(value) {
  if (value === null || value === undefined) return '–';
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return whole.format(value);
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e6 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
}

export const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

export const typeOf = ({ type, shape }) => `${type}[${shape.join(', ')}]`;

/** The coordinates of element `index` in a shape: "[0, 3, 7]". */
export function placeOf(index, shape) {
  const place = [];
  let rest = index;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    place.unshift(rest % shape[axis]);
    rest = Math.floor(rest / shape[axis]);
  }
  return `[${place.join(', ')}]`;
}

export function median(values) {
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** A valid file name, with the rules of the command line. */
export const fileName = (name) => name.replace(/[^A-Za-z0-9._-]/g, '_');
