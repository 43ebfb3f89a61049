/** A GIF encoder: frames of palette indices, packed by LZW; what did not change since the frame before is left out. */

const MOST_CODES = 4096;

/** Codes of growing width, from the low bits up, in blocks of 255 bytes. */
class Bits {
  #bytes = [];
  #block = [];
  #rest = 0;
  #count = 0;

  put(code, width) {
    this.#rest |= code << this.#count;
    this.#count += width;
    while (this.#count >= 8) {
      this.#byte(this.#rest & 255);
      this.#rest >>>= 8;
      this.#count -= 8;
    }
  }

  #byte(byte) {
    this.#block.push(byte);
    if (this.#block.length === 255) this.#flush();
  }

  #flush() {
    if (this.#block.length === 0) return;
    this.#bytes.push(this.#block.length, ...this.#block);
    this.#block = [];
  }

  end() {
    if (this.#count > 0) this.#byte(this.#rest & 255);
    this.#flush();
    this.#bytes.push(0);
    return this.#bytes;
  }
}

/** LZW as GIF has it, for indices below 2^depth. */
export function lzw(indices, depth) {
  const clear = 1 << depth,
    end = clear + 1;
  const out = new Bits();
  let table = new Map(),
    next = end + 1,
    width = depth + 1;
  out.put(clear, width);
  let prefix = indices[0];
  for (let i = 1; i < indices.length; i++) {
    const key = (prefix << 8) | indices[i];
    const known = table.get(key);
    if (known !== undefined) {
      prefix = known;
      continue;
    }
    out.put(prefix, width);
    if (next < MOST_CODES) {
      table.set(key, next);
      if (next === 1 << width) width++;
      next++;
    } else {
      out.put(clear, width);
      table = new Map();
      next = end + 1;
      width = depth + 1;
    }
    prefix = indices[i];
  }
  out.put(prefix, width);
  out.put(end, width);
  return out.end();
}

const short = (n) => [n & 255, n >> 8];

export class Gif {
  #parts = [];
  #before = null;

  /** `palette`: at most 255 colours as [r, g, b]; one index more stands for "as before". */
  constructor(width, height, palette) {
    this.width = width;
    this.height = height;
    this.depth = Math.max(2, Math.ceil(Math.log2(palette.length + 1)));
    this.clear = palette.length;
    const table = Array.from({ length: 1 << this.depth }, (_, i) => palette[i] ?? [0, 0, 0]);
    const text = (s) => [...s].map((c) => c.charCodeAt(0));
    this.#parts.push(
      [...text('GIF89a'), ...short(width), ...short(height), 0x80 | 0x70 | (this.depth - 1), 0, 0],
      table.flat(),
      [0x21, 0xff, 11, ...text('NETSCAPE2.0'), 3, 1, 0, 0, 0], // again and again
    );
  }

  /** A frame of palette indices, one per pixel, that stands for `ms`. */
  add(indices, ms) {
    const { clear, width, height } = this;
    const before = this.#before;
    const seen = before ? indices.map((index, i) => (index === before[i] ? clear : index)) : indices;
    this.#before = indices;
    this.#parts.push(
      [0x21, 0xf9, 4, 0x04 | (before ? 1 : 0), ...short(Math.max(2, Math.round(ms / 10))), clear, 0],
      [0x2c, 0, 0, 0, 0, ...short(width), ...short(height), 0],
      [this.depth],
      lzw(seen, this.depth),
    );
  }

  /** The file, as parts of a Blob. */
  end() {
    return [...this.#parts, [0x3b]].map((part) => Uint8Array.from(part));
  }
}

/** The colours that stand for most pixels of some pictures (RGBA), and a function from a picture to their indices. */
export function quantise(pictures, most = 255) {
  const counts = new Map();
  const key = (r, g, b) => ((r >> 3) << 10) | ((g >> 3) << 5) | (b >> 3);
  for (const data of pictures) {
    for (let i = 0; i < data.length; i += 4) {
      const k = key(data[i], data[i + 1], data[i + 2]);
      const entry = counts.get(k);
      if (!entry) counts.set(k, [1, data[i], data[i + 1], data[i + 2]]);
      else entry[0]++;
    }
  }
  const palette = [...counts.values()].sort((a, b) => b[0] - a[0]).slice(0, most).map(([, ...rgb]) => rgb);
  const nearest = new Map();
  const find = (r, g, b) => {
    let best = 0,
      least = Infinity;
    palette.forEach(([x, y, z], i) => {
      const gap = (x - r) ** 2 + (y - g) ** 2 + (z - b) ** 2;
      if (gap < least) [best, least] = [i, gap];
    });
    return best;
  };
  const indices = (data) => {
    const out = new Uint8Array(data.length / 4);
    for (let i = 0; i < out.length; i++) {
      const [r, g, b] = [data[4 * i], data[4 * i + 1], data[4 * i + 2]];
      const k = key(r, g, b);
      if (!nearest.has(k)) nearest.set(k, find(r, g, b));
      out[i] = nearest.get(k);
    }
    return out;
  };
  return { palette, indices };
}
