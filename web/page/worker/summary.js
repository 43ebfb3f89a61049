/** Statistics of an output: the range and mean of its finite elements, and the largest with their positions. */
import { reader } from '../common/types.js';

const TOP = 10;

export function summarise(type, data) {
  const read = reader(type);
  let min = Infinity,
    max = -Infinity,
    sum = 0,
    finite = 0;
  const top = [];
  for (let i = 0; i < data.length; i++) {
    const value = read(data[i]);
    if (!Number.isFinite(value)) continue;
    finite++;
    sum += value;
    if (value < min) min = value;
    if (value > max) max = value;
    if (top.length < TOP || value > top[top.length - 1].value) {
      let at = top.length;
      while (at > 0 && top[at - 1].value < value) at--;
      top.splice(at, 0, { index: i, value });
      if (top.length > TOP) top.pop();
    }
  }
  const none = finite === 0;
  return {
    min: none ? null : min,
    max: none ? null : max,
    mean: none ? null : sum / finite,
    notFinite: data.length - finite,
    top,
  };
}
