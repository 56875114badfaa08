// core.js - a loaded model and all that can be done with it, in the thread that it lives in. Everything is synchronous
// but score and bench, which stop for breath. A page's thread reaches it through service.js and a worker.

import { KraflaError } from './errors.js';
import { Generation } from './generation.js';
import { surprise } from './logprobs.js';
import { templateTokens } from './manifest.js';
import { median } from './median.js';
import { breathe } from './platform.js';
import { renderChat } from './template.js';
import { Timeline } from './timeline.js';

const SCORE_STEP = 64; // ids, between two breaths

export class Core {
  #parts;
  #manifest;
  #timeline;
  #generations = new Map();
  #lastGeneration = 0;
  #controlTexts;

  /** @param {{ engine: object, model: object, session: object, tokenizer?: object, build: string, manifest?: object }} parts */
  constructor(parts) {
    this.#parts = parts;
    this.#manifest = parts.manifest ?? {};
    this.#timeline = new Timeline(parts.session);
  }

  info() {
    const { engine, model, session, tokenizer, build } = this.#parts;
    const { name, architecture, license, source, chatTemplate, sampling } = this.#manifest;
    const facts = model.info();
    return {
      name,
      architecture,
      license,
      source,
      sampling,
      ...facts,
      build,
      kernels: session.kernels,
      threads: session.threads,
      contextSize: session.contextSize,
      memoryBytes: engine.memoryBytes,
      hasTokenizer: tokenizer !== undefined,
      hasChatTemplate: chatTemplate !== undefined,
      stopTokens: [...this.#stopTokens],
    };
  }

  // ---------------------------------------------------------------- text

  get #tokenizer() {
    const { tokenizer } = this.#parts;
    if (tokenizer) return tokenizer;
    throw new KraflaError('ML_E_STATE', 'the model was loaded without a tokenizer: it takes and gives token ids');
  }

  /** Ids of a text, or of messages in the model's template. */
  tokenize({ text, messages, templateOptions }, options) {
    return messages ? this.#encode({ messages, templateOptions }) : this.#tokenizer.encode(text, options);
  }

  detokenize(ids, options) {
    return this.#tokenizer.decode(ids, options);
  }

  get #stopTokens() {
    const stops = (this.#manifest.stopTokens ?? []).map(({ id }) => id);
    const end = this.#parts.tokenizer?.info().end;
    return new Set(stops.length > 0 ? stops : end === undefined ? [] : [end]);
  }

  get #controls() {
    this.#controlTexts ??= [...this.#tokenizer.controls()].filter((text) => text !== '');
    return this.#controlTexts;
  }

  /** @param {{ ids?: Int32Array, text?: string, special?: boolean, messages?: object[], templateOptions?: object }} prompt */
  #encode({ ids, text, special, messages, templateOptions }) {
    if (ids) return ids;
    if (text !== undefined) return this.#tokenizer.encode(text, { special });
    const { chatTemplate } = this.#manifest;
    if (chatTemplate === undefined)
      throw new KraflaError('KRAFLA_E_TEMPLATE', 'the model has no chat template: give it a text to go on with');
    const tokens = templateTokens(this.#manifest);
    const rendered = renderChat(chatTemplate, messages, { tokens, controls: this.#controls, templateOptions });
    return this.#tokenizer.encode(rendered.text, { special: true, bos: false, plain: rendered.plain });
  }

  // ---------------------------------------------------------------- generating

  /** Begins a generation, once it is sure that it can be: no work has been done by then. */
  begin(prompt, options) {
    const { engine, model, session, tokenizer } = this.#parts;
    const ids = this.#encode(prompt);
    this.#checkIds(ids, options.logitBias);
    if (ids.length > session.contextSize)
      throw new KraflaError(
        'ML_E_CONTEXT',
        `prompt = ${ids.length}: tokens do not fit the context of ${session.contextSize}`,
        { expected: session.contextSize, actual: ids.length },
      );
    const { vocabulary } = model.info();
    const parts = { engine, vocabulary, tokenizer, stopTokens: this.#stopTokens };
    const id = ++this.#lastGeneration;
    this.#generations.set(id, new Generation(this.#timeline, parts, ids, options));
    return { id, promptTokens: ids.length };
  }

  #checkIds(ids, logitBias = {}) {
    const { vocabulary } = this.#parts.model.info();
    if (ids.length === 0) throw new KraflaError('ML_E_ARG', 'prompt: there is no token to begin with');
    const biased = Object.keys(logitBias).map(Number);
    for (const id of [...ids, ...biased])
      if (id >= vocabulary)
        throw new KraflaError('ML_E_ARG', `token id = ${id}: must be below the vocabulary's ${vocabulary}`);
  }

  /**
   * Goes on by a step, and by further tokens, `most` in all, for as long as `ms` have not passed: what a message takes to
   * arrive is then little beside what it brings.
   * @returns {object[]} of Generation.step()
   */
  step({ id, most, ms }) {
    const generation = this.#generation(id);
    const until = performance.now() + ms;
    const steps = [];
    try {
      do steps.push(generation.step());
      while (!steps.at(-1).finish && !steps.at(-1).prompt && steps.length < most && performance.now() < until);
    } catch (error) {
      if (steps.length === 0) throw error; // else it comes again with the next step
    }
    return steps;
  }

  stop(id) {
    return this.#generation(id).stop();
  }

  end(id) {
    this.#generations.get(id)?.free();
    this.#generations.delete(id);
  }

  #generation(id) {
    const generation = this.#generations.get(id);
    if (!generation) throw new KraflaError('ML_E_STATE', `generation ${id} has ended`);
    return generation;
  }

  // ---------------------------------------------------------------- measuring

  /**
   * How surprised the model is by a text: windows of the context's length, each id but the first of a window scored.
   * @param {{ ids?: Int32Array, text?: string, special?: boolean }} what
   */
  async score(what, { signal } = {}) {
    const ids = this.#encode(what);
    this.#checkIds(ids);
    const { session } = this.#parts;
    const size = session.contextSize;
    const tally = { sum: 0, n: 0 };
    for (let begin = 0; begin + 1 < ids.length; begin += size)
      await this.#scoreWindow(ids.subarray(begin, begin + size), tally, signal);
    if (tally.n === 0)
      throw new KraflaError('ML_E_ARG', 'score: at least two tokens are needed, there is nothing to score');
    const meanNll = tally.sum / tally.n;
    return { perplexity: Math.exp(meanNll), meanNll, scoredTokens: tally.n, tokens: ids.length };
  }

  async #scoreWindow(ids, tally, signal) {
    const { session } = this.#parts;
    this.#timeline.clear();
    try {
      for (let at = 0; at < ids.length - 1; at += SCORE_STEP) {
        await breathe();
        signal?.throwIfAborted();
        const end = Math.min(at + SCORE_STEP, ids.length - 1);
        session.score(ids.subarray(at, end), (position, logits) => {
          tally.sum += surprise(logits, ids[position + 1]);
          tally.n++;
        });
      }
    } finally {
      this.#timeline.clear();
    }
  }

  /** The median of some rounds, tokens per second. */
  async bench({ promptTokens = 128, tokens = 32, repeat = 3 } = {}, { signal } = {}) {
    const { session, model } = this.#parts;
    const { vocabulary, weightBytes } = model.info();
    const room = session.contextSize;
    if (promptTokens + tokens > room)
      throw new KraflaError(
        'ML_E_CONTEXT',
        `bench = ${promptTokens + tokens}: tokens do not fit the context of ${room}`,
      );
    const ids = Array.from({ length: promptTokens }, (_, i) => (i + 1) % vocabulary);
    const rates = { prompt: [], decode: [] };
    for (let round = 0; round < repeat; round++) {
      await breathe();
      signal?.throwIfAborted();
      this.#timeline.lend((lent) => {
        const start = performance.now();
        lent.evaluate(ids);
        const middle = performance.now();
        for (let i = 0; i < tokens; i++) lent.evaluate([ids[i % ids.length]]);
        rates.prompt.push((1000 * promptTokens) / (middle - start));
        rates.decode.push((1000 * tokens) / (performance.now() - middle));
      });
    }
    const tokensPerSecond = median(rates.decode);
    return {
      promptTokensPerSecond: median(rates.prompt),
      tokensPerSecond,
      gigabytesPerSecond: (tokensPerSecond * weightBytes) / 1e9,
      promptTokens,
      tokens,
      repeat,
      threads: session.threads,
      kernels: session.kernels,
    };
  }

  /** Gives everything back. */
  free() {
    for (const id of [...this.#generations.keys()]) this.end(id);
    const { session, model, tokenizer, engine } = this.#parts;
    session.free();
    model.free();
    tokenizer?.free();
    engine.stop();
  }
}
