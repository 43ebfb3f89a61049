/** Pictures for inputs with image shapes: [N, C, H, W] or [N, H, W, C], with or without N. */
import { arrayOf, countOf, isFloat, writer } from '../common/types.js';

const CHANNELS = [1, 3, 4];

/** Conversion of a channel's byte to a number. */
export const scales = {
  unit: { title: '0 to 1', of: (byte) => byte / 255 },
  both: { title: '−1 to 1', of: (byte) => byte / 127.5 - 1 },
  bytes: { title: '0 to 255', of: (byte) => byte },
  imagenet: {
    title: 'ImageNet’s mean and deviation',
    of: (byte, c) => (byte / 255 - [0.485, 0.456, 0.406][c % 3]) / [0.229, 0.224, 0.225][c % 3],
  },
};

/** The axes of channels, height and width; null if it is not an image. */
export function layoutOf({ type, shape }) {
  if (type === 'bool' || shape.length < 3 || shape.length > 4) return null;
  if (shape.length === 4 && shape[0] !== 1) return null;
  const [a, b, c] = shape.slice(-3);
  if (CHANNELS.includes(a) && b > 3 && c > 3) return { channels: a, height: b, width: c, last: false };
  if (CHANNELS.includes(c) && a > 3 && b > 3) return { channels: c, height: a, width: b, last: true };
  return null;
}

/** The picture, cropped at the centre to the input's proportions, as elements. */
export async function imageElements(file, input, scale) {
  const { channels, height, width, last } = layoutOf(input);
  const bitmap = await createImageBitmap(file);
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d', { willReadFrequently: true });
  const zoom = Math.max(width / bitmap.width, height / bitmap.height);
  const across = bitmap.width * zoom,
    down = bitmap.height * zoom;
  context.imageSmoothingQuality = 'high';
  context.drawImage(bitmap, (width - across) / 2, (height - down) / 2, across, down);
  bitmap.close();
  const { data: pixels } = context.getImageData(0, 0, width, height);

  const out = new (arrayOf(input.type))(countOf(input.shape));
  const write = writer(input.type);
  const from = isFloat(input.type) ? scales[scale].of : scales.bytes.of;
  for (let i = 0; i < width * height; i++) {
    const [r, g, b, alpha] = pixels.subarray(4 * i, 4 * i + 4);
    const colours = channels === 1 ? [0.299 * r + 0.587 * g + 0.114 * b] : [r, g, b, alpha];
    for (let c = 0; c < channels; c++) {
      out[last ? i * channels + c : c * width * height + i] = write(from(colours[c], c));
    }
  }
  return out;
}
