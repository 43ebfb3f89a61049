/** The visible part of the plan: steps [x0, x1) horizontally, bytes [y0, y1) vertically. */

const CLOSEST = 4000; // largest zoom factor

export class View {
  constructor(first, last, bottom, top) {
    this.whole = { x0: first, x1: Math.max(first + 1, last), y0: bottom, y1: Math.max(bottom + 1, top) };
    this.fit();
  }

  fit() {
    Object.assign(this, this.whole);
  }

  get zoom() {
    return (this.whole.x1 - this.whole.x0) / (this.x1 - this.x0);
  }

  /** Zooms by `factor`, keeping the point at the fraction (fx, fy) of the picture in place. */
  zoomBy(factor, fx = 0.5, fy = 0.5) {
    const times = Math.min(CLOSEST, Math.max(1, this.zoom * factor)) / this.zoom;
    const width = (this.x1 - this.x0) / times;
    const height = (this.y1 - this.y0) / times;
    this.#moveTo(
      this.x0 + fx * (this.x1 - this.x0 - width),
      this.y0 + fy * (this.y1 - this.y0 - height),
      width,
      height,
    );
  }

  /** By fractions of the visible part. */
  moveBy(fx, fy) {
    const width = this.x1 - this.x0;
    const height = this.y1 - this.y0;
    this.#moveTo(this.x0 + fx * width, this.y0 + fy * height, width, height);
  }

  /** As little as needed to make a buffer visible. */
  reveal({ birth, death, offset, size }) {
    const width = this.x1 - this.x0;
    const height = this.y1 - this.y0;
    const near = (from, to, low, length) => {
      if (to - from > length || from < low) return from;
      return to > low + length ? to - length : low;
    };
    this.#moveTo(near(birth, death, this.x0, width), near(offset, offset + size, this.y0, height), width, height);
  }

  #moveTo(x, y, width, height) {
    const { whole } = this;
    this.x0 = Math.min(Math.max(x, whole.x0), whole.x1 - width);
    this.y0 = Math.min(Math.max(y, whole.y0), whole.y1 - height);
    this.x1 = this.x0 + width;
    this.y1 = this.y0 + height;
  }
}
