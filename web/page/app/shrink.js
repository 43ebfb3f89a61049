/**
 * A drawing as the digits of the training set are: the set's makers put each digit into 32 by 32 points, and counted
 * those of each 4 by 4. So here: the ink is brought to the full height, put in the middle, and averaged.
 */

/** `ink`: how dark each point of a square with `side` points is, 0 to 1. Gives `size` x `size` numbers, or null for nothing. */
export function shrink(ink, side, size) {
  let left = side, right = -1, top = side, bottom = -1;
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

  // A one is thin: it keeps its proportions. So does what is wider than it is high.
  const extent = Math.max(right - left + 1, bottom - top + 1, side / 8);
  const centreX = (left + right + 1) / 2, centreY = (top + bottom + 1) / 2;
  const cell = extent / size;
  const out = new Float32Array(size * size);
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      out[row * size + column] = average(ink, side, centreX - extent / 2 + column * cell, centreY - extent / 2 + row * cell, cell);
    }
  }
  return out;
}

/** The mean of the square of `cell` points at (x, y); outside there is no ink. */
function average(ink, side, x, y, cell) {
  const x0 = Math.floor(x), y0 = Math.floor(y), x1 = Math.ceil(x + cell), y1 = Math.ceil(y + cell);
  let sum = 0;
  for (let py = Math.max(0, y0); py < Math.min(side, y1); py++) {
    const high = Math.min(py + 1, y + cell) - Math.max(py, y);
    for (let px = Math.max(0, x0); px < Math.min(side, x1); px++) {
      sum += ink[py * side + px] * high * (Math.min(px + 1, x + cell) - Math.max(px, x));
    }
  }
  return sum / (cell * cell);
}
