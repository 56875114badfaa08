// generation.js - one continuation of a prompt, a step at a time: a batch of the prompt, or one token.

import { Sampler } from './handles.js';
import { logprobsOf } from './logprobs.js';
import { StopMatcher } from './stops.js';

const PROMPT_STEP = 64; // tokens, so that a wish to stop is heard soon

/** What the sampler takes, of the options of generate(). Without a seed it is a new one each time. */
function samplerOptions({ seed, logitBias = {}, ...options }) {
  const biases = Object.entries(logitBias).map(([id, bias]) => [Number(id), bias]);
  return { ...options, biases, seed: seed === undefined ? freshSeed() : BigInt(seed) };
}

/** A whole number below 2^53, so that it can be told, and given again. */
function freshSeed() {
  const [high, low] = globalThis.crypto.getRandomValues(new Uint32Array(2));
  return (BigInt(high) >> 11n) * (1n << 32n) + BigInt(low);
}

export class Generation {
  #timeline;
  #ids; // of the prompt, and what was generated
  #promptTokens;
  #sampler;
  #decoder;
  #stops;
  #stopTokens;
  #maxTokens;
  #nLogprobs; // undefined: not asked for
  #cached = -1;
  #promptMs = 0;
  #decodeMs = 0;
  #seed;

  /**
   * @param {import('./timeline.js').Timeline} timeline
   * @param {{ engine: object, vocabulary: number, tokenizer?: object, stopTokens: Set<number> }} parts
   * @param {Int32Array} prompt fits the context
   * @param {object} options of generate(), checked; endless: no token ends it
   */
  constructor(
    timeline,
    { engine, vocabulary, tokenizer, stopTokens },
    prompt,
    { maxTokens = Infinity, stop = [], logprobs, endless = false, ...options },
  ) {
    const sampling = samplerOptions(options);
    this.#timeline = timeline;
    this.#ids = Array.from(prompt);
    this.#promptTokens = prompt.length;
    this.#stopTokens = endless ? new Set() : stopTokens;
    this.#maxTokens = maxTokens;
    this.#nLogprobs = logprobs;
    this.#stops = new StopMatcher([stop].flat());
    this.#seed = sampling.seed <= Number.MAX_SAFE_INTEGER ? Number(sampling.seed) : sampling.seed;
    this.#sampler = new Sampler(engine, vocabulary, sampling);
    this.#decoder = tokenizer?.decoder();
    for (const id of prompt) this.#sampler.accept(id);
  }

  /**
   * Goes on by a batch of the prompt (`prompt`: how far it is), or by a token (`id`, and the text that it makes certain).
   * The last one has `finish`, with everything that is told at the end.
   */
  step() {
    const started = performance.now();
    const cached = this.#timeline.settle(this.#ids);
    if (this.#cached < 0) this.#cached = Math.min(cached, this.#promptTokens);
    if (this.#generated === 0 && this.#isFull) return { text: '', finish: this.#finish('length') };
    const due = this.#timeline.due;
    if (due > 1) {
      this.#timeline.advance(PROMPT_STEP);
      this.#count(started);
      if (this.#timeline.due > 0 || due > PROMPT_STEP / 2)
        return { prompt: { done: this.#ids.length - this.#timeline.due, total: this.#ids.length } };
    }
    if (this.#timeline.due > 0) this.#timeline.advance(PROMPT_STEP);
    const result = this.#sample();
    this.#count(started);
    if (result.finish) result.finish = this.#finish(result.finish);
    return result;
  }

  /** Ends it before its time: the text that was held back, and what is told at the end. */
  stop() {
    const text = this.#rest();
    return { text, finish: this.#finish('stopped') };
  }

  free() {
    this.#sampler.free();
    this.#decoder?.free();
  }

  get #generated() {
    return this.#ids.length - this.#promptTokens;
  }

  get #isFull() {
    return this.#generated >= this.#maxTokens || this.#ids.length >= this.#timeline.contextSize;
  }

  #sample() {
    const logits = this.#timeline.logits();
    const id = this.#sampler.sample(logits);
    const result = this.#accept(id);
    if (this.#nLogprobs !== undefined && result.id !== undefined)
      result.logprobs = logprobsOf(logits, id, this.#nLogprobs);
    return result;
  }

  #accept(id) {
    if (this.#stopTokens.has(id)) return { text: this.#rest(), finish: 'stop' };
    this.#ids.push(id);
    this.#sampler.accept(id);
    const { text, stopped } = this.#stops.push(this.#decoder?.push(id) ?? '');
    if (stopped) return { id, text, finish: 'stop' };
    if (!this.#isFull) return { id, text };
    return { id, ...this.#restAfter(text) };
  }

  /** What is held back may still bring a stop string to light. */
  #restAfter(text) {
    const { text: more, stopped } = this.#stops.push(this.#decoder?.finish() ?? '');
    if (stopped) return { text: text + more, finish: 'stop' };
    return { text: text + more + this.#stops.finish(), finish: 'length' };
  }

  #rest() {
    const { text, stopped } = this.#stops.push(this.#decoder?.finish() ?? '');
    return stopped ? text : text + this.#stops.finish();
  }

  #count(started) {
    const ms = performance.now() - started;
    if (this.#generated > 1) this.#decodeMs += ms;
    else this.#promptMs += ms;
  }

  #finish(finishReason) {
    const completionTokens = this.#generated;
    const promptTokens = this.#promptTokens;
    const cachedTokens = Math.max(0, this.#cached);
    const rate = (tokens, ms) => (ms > 0 && tokens > 0 ? (1000 * tokens) / ms : 0);
    return {
      finishReason,
      seed: this.#seed,
      usage: { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens, cachedTokens },
      timings: {
        promptMs: this.#promptMs,
        decodeMs: this.#decodeMs,
        promptTokensPerSecond: rate(promptTokens - cachedTokens, this.#promptMs),
        tokensPerSecond: rate(completionTokens - 1, this.#decodeMs),
      },
    };
  }
}
