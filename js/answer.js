// answer.js - what generate() gives: a text on its way. It can be awaited, for the whole, or iterated, for the pieces; it
// is the same object. Awaited, it runs to its end; iterated, only as far as somebody asks for more.

const IDLE_MS = 20; // of a consumer, until others may have their turn
const STEP_MS = 8; // of tokens that come together
const STEP_TOKENS = 16;

export class Answer {
  /** The text so far, and its tokens. */
  text = '';
  tokens = [];

  /** Of each token, if they were asked for. */
  logprobs;

  /** Of the prompt; 0 until it has been looked at. */
  promptTokens = 0;

  #job;
  #result;
  #resolve;
  #reject;
  #settled = false;
  #eager = true; // nobody has asked for pieces: run
  #wanted = false; // somebody waits for a piece
  #taken = 0; // how much of the text the pieces have had
  #stopping = false;
  #wake = () => {}; // somebody waits for something to happen

  /**
   * @param {object} job
   * @param {import('./turns.js').Turns} job.turns
   * @param {() => Promise<{ id: number, promptTokens: number }>} job.begin
   * @param {(method: 'step' | 'stop' | 'end', params: any) => Promise<any>} job.call
   * @param {AbortSignal} [job.signal]
   * @param {(token: { id: number, text: string, index: number }) => void} [job.onToken]
   * @param {(answer: Answer, result?: object, error?: unknown) => void} [job.onEnd]
   */
  constructor(job) {
    this.#job = job;
    this.#result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // By the next microtask a `for await` has asked for its iterator.
    queueMicrotask(() => this.#run());
  }

  /** Ends it, with what there is by now: finishReason is "stopped". */
  stop() {
    this.#stopping = true;
    this.#wake();
  }

  then(onResolved, onRejected) {
    this.#eager = true;
    this.#wake();
    return this.#result.then(onResolved, onRejected);
  }

  catch(onRejected) {
    return this.then(undefined, onRejected);
  }

  finally(onSettled) {
    return this.then().finally(onSettled);
  }

  [Symbol.asyncIterator]() {
    this.#eager = false;
    this.#result.catch(() => {}); // the iterator tells
    return {
      next: () => this.#nextPiece(),
      return: async () => {
        this.stop();
        await this.#result.catch(() => {});
        return { done: true, value: undefined };
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  async #nextPiece() {
    while (this.#taken === this.text.length && !this.#settled) {
      this.#wanted = true;
      this.#wake();
      await new Promise((resolve) => this.#onPiece.push(resolve));
    }
    this.#wanted = false;
    if (this.#taken === this.text.length) {
      await this.#result; // throws if it failed
      return { done: true, value: undefined };
    }
    const value = this.text.slice(this.#taken);
    this.#taken = this.text.length;
    return { done: false, value };
  }

  #onPiece = [];

  #tellPieces() {
    for (const resolve of this.#onPiece.splice(0)) resolve();
  }

  // ---------------------------------------------------------------- running

  async #run() {
    const { signal } = this.#job;
    const onAbort = () => {
      this.#settle(undefined, signal.reason);
      this.#wake();
    };
    if (signal?.aborted) return onAbort();
    signal?.addEventListener('abort', onAbort);
    try {
      await this.#work();
    } catch (error) {
      this.#settle(undefined, error);
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /** From its first turn to its end. Between pieces that nobody wants, others have theirs. */
  async #work() {
    const { turns, begin, call, onToken } = this.#job;
    const limit = onToken ? 1 : STEP_TOKENS; // who looks at each token may want no other
    let most = 1; // who has taken much will take more
    let endTurn = await turns.take();
    let id;
    try {
      if (this.#settled) return;
      ({ id, promptTokens: this.promptTokens } = await begin());
      while (!this.#settled) {
        if (!(await this.#isWanted(IDLE_MS))) {
          endTurn();
          await this.#isWanted();
          endTurn = await turns.take();
        }
        if (this.#settled) return;
        if (this.#stopping) this.#take(await call('stop', id));
        else for (const step of await call('step', { id, most, ms: STEP_MS })) this.#take(step);
        most = Math.min(2 * most, limit);
      }
    } finally {
      if (id !== undefined) await call('end', id).catch(() => {}); // whatever it was has been told
      endTurn();
    }
  }

  /** Waits until there is something to do, or for some time. */
  async #isWanted(ms) {
    const isDue = () => this.#eager || this.#wanted || this.#stopping || this.#settled;
    const patience = ms === undefined ? undefined : Date.now() + ms;
    while (!isDue() && !(Date.now() >= patience))
      await new Promise((resolve) => {
        this.#wake = resolve;
        if (ms !== undefined) setTimeout(resolve, ms);
      });
    return isDue();
  }

  #take({ id, text, finish, prompt, logprobs }) {
    if (this.#settled) return; // aborted meanwhile
    if (prompt) return;
    if (id !== undefined) this.tokens.push(id);
    if (logprobs) (this.logprobs ??= []).push(logprobs);
    this.text += text;
    if (text !== '') this.#wanted = false;
    if (id !== undefined) this.#job.onToken?.({ id, text, index: this.tokens.length - 1, logprobs });
    if (finish) this.#settle({ text: this.text, tokens: this.tokens, logprobs: this.logprobs, ...finish });
    else if (text !== '') this.#tellPieces();
  }

  #settle(result, error) {
    if (this.#settled) return;
    this.#settled = true;
    this.#job.onEnd?.(this, result, error);
    if (result) this.#resolve(result);
    else this.#reject(error);
    this.#tellPieces();
  }
}
