/** A GIF encoder: frames of palette indices, compressed by LZW; unchanged pixels are transparent. */

const MOST_CODES = 4096;

/** Codes of increasing width, low bits first, in blocks of 255 bytes. */
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

const SLOTS = 1 << 13; // twice the number of codes

/** Codes by prefix and next index: open addressing, since a Map of numbers is slow. */
class Codes {
  #keys = new Int32Array(SLOTS).fill(-1);
  #codes = new Int16Array(SLOTS);

  clear() {
    this.#keys.fill(-1);
  }

  /** The code of a key, or -1: then it gets `code` unless that is -1. */
  find(key, code) {
    let slot = (key * 0x9e3779b1) >>> 19;
    while (this.#keys[slot] !== -1) {
      if (this.#keys[slot] === key) return this.#codes[slot];
      slot = (slot + 1) & (SLOTS - 1);
    }
    if (code >= 0) {
      this.#keys[slot] = key;
      this.#codes[slot] = code;
    }
    return -1;
  }
}

/** GIF's variant of LZW, for indices below 2^depth. */
export function lzw(indices, depth) {
  const clear = 1 << depth,
    end = clear + 1;
  const out = new Bits(),
    codes = new Codes();
  let next = end + 1,
    width = depth + 1;
  out.put(clear, width);
  let prefix = indices[0];
  for (let i = 1; i < indices.length; i++) {
    const known = codes.find((prefix << 8) | indices[i], next < MOST_CODES ? next : -1);
    if (known >= 0) {
      prefix = known;
      continue;
    }
    out.put(prefix, width);
    if (next < MOST_CODES) {
      if (next === 1 << width) width++;
      next++;
    } else {
      out.put(clear, width);
      codes.clear();
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

  /** `palette`: at most 255 colours as [r, g, b]; one more index means "unchanged". */
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
      [0x21, 0xff, 11, ...text('NETSCAPE2.0'), 3, 1, 0, 0, 0], // repeats for ever
    );
  }

  /** A frame of palette indices, one per pixel, shown for `ms`. */
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

const SHADES = 1 << 15; // five bits of each channel
const shade = (data, i) => ((data[i] >> 3) << 10) | ((data[i + 1] >> 3) << 5) | (data[i + 2] >> 3);

/** Collects the colours of pictures (RGBA), and then maps each to one of the most frequent. */
export class Palette {
  #counts = new Uint32Array(SHADES);
  #colours = new Map(); // the first colour found for each shade
  #nearest = new Int16Array(SHADES).fill(-1);
  list = [];

  see(data) {
    for (let i = 0; i < data.length; i += 4) {
      const at = shade(data, i);
      if (this.#counts[at]++ === 0) this.#colours.set(at, [data[i], data[i + 1], data[i + 2]]);
    }
  }

  /** At most `most` colours: 255, since one index of a GIF means unchanged. */
  settle(most = 255) {
    const order = [...this.#colours.keys()].sort((a, b) => this.#counts[b] - this.#counts[a]);
    this.list = order.slice(0, most).map((at) => this.#colours.get(at));
  }

  #find(data, i) {
    let best = 0,
      least = Infinity;
    this.list.forEach(([r, g, b], k) => {
      const gap = (r - data[i]) ** 2 + (g - data[i + 1]) ** 2 + (b - data[i + 2]) ** 2;
      if (gap < least) [best, least] = [k, gap];
    });
    return best;
  }

  /** A picture as palette indices. */
  indices(data) {
    const out = new Uint8Array(data.length / 4);
    for (let i = 0; i < out.length; i++) {
      const at = shade(data, 4 * i);
      if (this.#nearest[at] < 0) this.#nearest[at] = this.#find(data, 4 * i);
      out[i] = this.#nearest[at];
    }
    return out;
  }
}
