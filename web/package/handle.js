import { BerthError } from './program.js';

/** An object with an address in C, until it is closed. */
export class Handle {
  #at;
  #close;

  constructor(program, what, at, close) {
    this.program = program;
    this.what = what;
    this.#at = at;
    this.#close = close;
  }

  get at() {
    if (this.#at === 0) throw new BerthError('INVALID', `the ${this.what} is closed`);
    return this.#at;
  }

  close() {
    const at = this.#at;
    this.#at = 0;
    if (at !== 0) this.program.queue(() => this.program.call(this.#close, at)).catch(() => {});
  }
}
