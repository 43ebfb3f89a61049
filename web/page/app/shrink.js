/**
 * Converts a drawing to the form of the training set, whose makers put each digit into 32 by 32 points, and counted
 * those of each 4 by 4. So the ink is deslanted, scaled to the full height, centred, and averaged.
 */

const MOST_LEAN = 0.25; // points to the side per point down: more is not a slant, but how the digit is written

/** Shears rows until the ink is upright, because the network has seen few slanted digits. */
function upright(ink, side) {
  let mass = 0,
    x = 0,
    y = 0;
  ink.forEach((value, i) => {
    mass += value;
    x += value * (i % side);
    y += value * Math.floor(i / side);
  });
  if (mass === 0) return ink;
  x /= mass;
  y /= mass;
  let across = 0,
    down = 0;
  ink.forEach((value, i) => {
    const dy = Math.floor(i / side) - y;
    across += value * ((i % side) - x) * dy;
    down += value * dy * dy;
  });
  const lean = Math.min(MOST_LEAN, Math.max(-MOST_LEAN, across / down || 0));
  return ink.map((_, i) => {
    const row = Math.floor(i / side);
    const from = (i % side) + lean * (row - y);
    const left = Math.floor(from),
      part = from - left;
    const at = (column) => (column >= 0 && column < side ? ink[row * side + column] : 0);
    return at(left) * (1 - part) + at(left + 1) * part;
  });
}

/**
 * `drawn`: the darkness of each point of a square, 0 to 1. Returns `size` x `size` numbers, or null if nothing is
 * drawn.
 */
export function shrink(drawn, side, size) {
  const ink = upright(drawn, side);
  let left = side,
    right = -1,
    top = side,
    bottom = -1;
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      if (ink[y * side + x] < 0.2) continue;
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
  }
  if (right < 0) return null;

  // A one is thin and keeps its proportions, and so does anything wider than high.
  const extent = Math.max(right - left + 1, bottom - top + 1, side / 8);
  const centreX = (left + right + 1) / 2,
    centreY = (top + bottom + 1) / 2;
  const cell = extent / size;
  const out = new Float32Array(size * size);
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      out[row * size + column] = average(
        ink,
        side,
        centreX - extent / 2 + column * cell,
        centreY - extent / 2 + row * cell,
        cell,
      );
    }
  }
  return out;
}

/** The mean of the square of `cell` points at (x, y); there is no ink outside. */
function average(ink, side, x, y, cell) {
  const x0 = Math.floor(x),
    y0 = Math.floor(y),
    x1 = Math.ceil(x + cell),
    y1 = Math.ceil(y + cell);
  let sum = 0;
  for (let py = Math.max(0, y0); py < Math.min(side, y1); py++) {
    const high = Math.min(py + 1, y + cell) - Math.max(py, y);
    for (let px = Math.max(0, x0); px < Math.min(side, x1); px++) {
      sum += ink[py * side + px] * high * (Math.min(px + 1, x + cell) - Math.max(px, x));
    }
  }
  return sum / (cell * cell);
}
