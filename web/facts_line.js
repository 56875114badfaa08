// facts_line.js - below the question: which model, how fast, how full, which build.

const TELL_MS = 250; // a number that changes faster cannot be read

export class FactsLine {
  #parts;
  #contextSize = 0;
  #told = 0;

  /** @param {HTMLElement} root as in index.html */
  constructor(root) {
    const part = (id) => root.querySelector(`#${id}`);
    this.#parts = {
      name: part('model-name'),
      speed: part('speed'),
      words: part('context-words'),
      meter: part('context-meter'),
      build: part('build'),
    };
  }

  /** @param {object} info of the model */
  showModel(name, { contextSize, build, threads }) {
    this.#contextSize = contextSize;
    this.#parts.name.textContent = name;
    this.#parts.build.textContent = `${build}, ${threads} ${threads === 1 ? 'thread' : 'threads'}`;
    this.#parts.meter.max = contextSize;
    this.#parts.meter.high = contextSize * 0.8;
    this.showContext(0);
    this.#parts.speed.textContent = '';
  }

  showContext(used) {
    this.#parts.words.textContent = `context ${used} of ${this.#contextSize}`;
    this.#parts.meter.value = used;
  }

  /** While an answer is made: so many tokens in so many milliseconds. */
  showRunning({ tokens, ms, contextUsed }) {
    const now = performance.now();
    if (now - this.#told < TELL_MS || tokens === 0) return;
    this.#told = now;
    this.showContext(contextUsed);
    this.#showSpeed((tokens * 1000) / ms);
  }

  /** @param {{ usage: object, timings: object }} result of generate() */
  showResult({ usage, timings }) {
    if (timings.tokensPerSecond > 0) this.#showSpeed(timings.tokensPerSecond);
    this.showContext(usage.totalTokens);
  }

  #showSpeed(tokensPerSecond) {
    this.#parts.speed.textContent = `${tokensPerSecond.toFixed(tokensPerSecond < 10 ? 1 : 0)} tokens/s`;
  }
}
