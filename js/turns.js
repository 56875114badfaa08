// turns.js - a model does one thing at a time: who comes first goes first.

export class Turns {
  #last = Promise.resolve();

  /** Waits for all turns before it. Resolves to a function that ends this one, and may be called twice. */
  async take() {
    const before = this.#last;
    let end;
    this.#last = new Promise((resolve) => {
      end = resolve;
    });
    await before;
    return end;
  }
}
