// timeline.js - the session's tokens, kept for as long as they are of use: a text that begins like the one before costs
// only what is new of it. Results are the same either way (docs/NUMERICS.md).

export class Timeline {
  #session;
  #past = []; // ids that the session has seen
  #wanted = []; // ids that it should have seen

  /** @param {import('./handles.js').Session} session */
  constructor(session) {
    this.#session = session;
  }

  get contextSize() {
    return this.#session.contextSize;
  }

  /** Ids that are still to be evaluated. */
  get due() {
    return this.#wanted.length - this.#past.length;
  }

  /**
   * Makes the session's tokens a beginning of `ids`, as long as it can be, such that there are logits of the last one or
   * it is still due. Gives how long it is.
   * @param {number[]} ids at least one
   */
  settle(ids) {
    this.#wanted = ids;
    const past = this.#past;
    let same = 0;
    while (same < past.length && same < ids.length && past[same] === ids[same]) same++;
    const hasLogits = past.length === ids.length && this.#session.logits() !== undefined;
    const keep = same === past.length && (same < ids.length || hasLogits) ? same : Math.min(same, ids.length - 1);
    if (keep < past.length) past.length = this.#session.truncate(keep);
    return past.length;
  }

  /** Evaluates at most n of the ids that are due. */
  advance(n) {
    const ids = this.#wanted.slice(this.#past.length, this.#past.length + n);
    try {
      this.#session.evaluate(ids);
      for (const id of ids) this.#past.push(id);
    } catch (error) {
      this.#past.length = this.#session.position; // some layers cannot take a failed batch back
      throw error;
    }
  }

  /** Of the last id; none must be due. */
  logits() {
    return this.#session.logits();
  }

  /** Lends the session, which comes back empty. */
  lend(use) {
    this.clear();
    try {
      return use(this.#session);
    } finally {
      this.clear();
    }
  }

  clear() {
    this.#session.truncate(0);
    this.#past = [];
    this.#wanted = [];
  }
}
