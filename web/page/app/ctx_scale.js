/** The scale of context lengths: from few tokens to the model's maximum, logarithmic. */

const FEWEST = 64;
const STEPS = 1000; // of the slider
const PER_DOUBLING = 16; // values between a power of two and the next

export class CtxScale {
  /** `most`: tokens at the end. */
  constructor(most) {
    this.most = Math.max(1, most);
    this.least = 2 ** Math.floor(Math.log2(Math.max(1, Math.min(FEWEST, this.most / 16))));
    this.steps = STEPS;
  }

  /** From 0 to 1; values outside are clamped. */
  share(ctx) {
    if (this.most === this.least) return 1;
    const share = Math.log2(ctx / this.least) / Math.log2(this.most / this.least);
    return Math.min(1, Math.max(0, share));
  }

  /** The length at a position, rounded. */
  at(share) {
    const exact = this.least * (this.most / this.least) ** Math.min(1, Math.max(0, share));
    if (exact >= this.most) return this.most;
    const step = Math.max(1, 2 ** Math.floor(Math.log2(exact)) / PER_DOUBLING);
    return Math.min(this.most, Math.max(this.least, Math.round(Math.round(exact / step) * step)));
  }

  /** The lengths planned for the chart: every power of two, and the end. */
  get points() {
    const points = [];
    for (let ctx = this.least; ctx < this.most; ctx *= 2) points.push(ctx);
    return [...points, this.most];
  }
}

/** "4K", "131,072": the usual notation of contexts. */
export function shortTokens(n) {
  if (n >= 1 << 20 && n % (1 << 20) === 0) return `${n >> 20}M`;
  return n >= 1024 && n % 1024 === 0 ? `${n / 1024}K` : new Intl.NumberFormat('en').format(n);
}
