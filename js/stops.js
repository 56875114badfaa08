// stops.js - holds text back for as long as it may turn out to be the beginning of a stop string.

export class StopMatcher {
  #stops;
  #held = '';

  /** @param {string[]} stops not empty each */
  constructor(stops) {
    this.#stops = stops;
  }

  /**
   * Takes a piece of text. Gives what can be shown by now, and whether a stop was found: then that was all. Of several
   * stops the one that is complete first counts, so how the text is cut into pieces changes nothing.
   */
  push(piece) {
    this.#held += piece;
    const found = this.#stops
      .map((stop) => ({ at: this.#held.indexOf(stop), length: stop.length }))
      .filter(({ at }) => at >= 0)
      .sort((a, b) => a.at + a.length - (b.at + b.length) || a.at - b.at)[0];
    if (found) {
      const text = this.#held.slice(0, found.at);
      this.#held = '';
      return { text, stopped: true };
    }
    const shown = this.#held.length - Math.max(0, ...this.#stops.map((stop) => overlap(this.#held, stop)));
    const text = this.#held.slice(0, shown);
    this.#held = this.#held.slice(shown);
    return { text, stopped: false };
  }

  /** The rest, when no more text comes. */
  finish() {
    const text = this.#held;
    this.#held = '';
    return text;
  }
}

/** Length of the longest end of the text that a stop begins with, shorter than the stop. */
function overlap(text, stop) {
  for (let n = Math.min(text.length, stop.length - 1); n > 0; n--) if (text.endsWith(stop.slice(0, n))) return n;
  return 0;
}
