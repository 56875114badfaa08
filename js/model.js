// model.js - a loaded model, as callers see it. The work is done behind a host (host.js); here are promises.

import { Answer } from './answer.js';
import { Chat } from './chat.js';
import { KraflaError } from './errors.js';
import { median } from './median.js';
import {
  BENCH,
  DETOKENIZE,
  GENERATE,
  SCORE,
  TOKENIZE,
  checkIds,
  checkMessages,
  checkOptions,
  fail,
} from './options.js';
import { Turns } from './turns.js';

/** A text, messages or ids, told apart. */
function readPrompt(prompt, { special, templateOptions }) {
  if (typeof prompt === 'string') return { text: prompt, special };
  const isMessages = Array.isArray(prompt) && prompt.length > 0 && prompt.every((item) => typeof item === 'object');
  if (isMessages) return { messages: checkMessages(prompt), templateOptions };
  if (Array.isArray(prompt) || ArrayBuffer.isView(prompt)) return { ids: checkIds('prompt', prompt) };
  return fail('prompt', prompt, 'must be a string, messages, or token ids');
}

export class Model {
  #host;
  #turns = new Turns();
  #closed = false;

  /** What it is, and how it runs here. */
  info;

  /** For loadModel only. */
  constructor(host, info) {
    this.#host = host;
    this.info = info;
  }

  generate(prompt, options = {}) {
    const { special, templateOptions, ...checked } = checkOptions(options, GENERATE);
    return this.#start(readPrompt(prompt, { special, templateOptions }), checked);
  }

  chat(options = {}) {
    const generate = (messages, { templateOptions, ...rest }, onEnd) =>
      this.#start({ messages, templateOptions }, rest, onEnd);
    return new Chat(generate, options);
  }

  #start(prompt, { signal, onToken, ...options }, onEnd) {
    const begin = () => this.#host.call('begin', { prompt, options });
    const call = (method, params) => this.#host.call(method, params);
    return new Answer({ turns: this.#turns, begin, call, signal, onToken, onEnd });
  }

  async tokenize(what, options = {}) {
    const { templateOptions, ...rest } = checkOptions(options, TOKENIZE);
    const prompt = readPrompt(what, { templateOptions });
    if (prompt.ids) fail('prompt', what, 'is token ids already');
    return this.#inTurn('tokenize', { what: prompt, options: rest });
  }

  async detokenize(ids, options = {}) {
    return this.#inTurn('detokenize', { ids: checkIds('ids', ids), options: checkOptions(options, DETOKENIZE) });
  }

  async score(what, options = {}) {
    const { signal, special } = checkOptions(options, SCORE);
    const text = typeof what === 'string' ? { text: what, special } : { ids: checkIds('ids', what) };
    return this.#inTurn('score', text, signal);
  }

  async bench(options = {}) {
    const { signal, ...rest } = checkOptions(options, BENCH);
    const evaluating = await this.#inTurn('bench', rest, signal);
    return { ...evaluating, ...(await this.#benchAnswers(evaluating, signal)) };
  }

  /** The same number of tokens as answers that callers ask for: what sampling takes, and what messages take. */
  async #benchAnswers({ promptTokens, tokens, repeat }, signal) {
    const ids = Int32Array.from({ length: promptTokens }, (_, i) => (i + 1) % this.info.vocabulary);
    const rates = { generated: [], received: [] };
    for (let round = 0; round < repeat; round++) {
      const started = performance.now();
      const { timings } = await this.#start({ ids }, { maxTokens: tokens, endless: true, signal });
      const ms = performance.now() - started - timings.promptMs;
      rates.generated.push(timings.tokensPerSecond);
      rates.received.push((1000 * (tokens - 1)) / ms);
    }
    return {
      generatedTokensPerSecond: median(rates.generated),
      receivedTokensPerSecond: median(rates.received),
    };
  }

  async #inTurn(method, params, signal) {
    const endTurn = await this.#turns.take();
    try {
      return await this.#host.call(method, params, { signal });
    } finally {
      endTurn();
    }
  }

  /** Ends what it is doing: everything that waits fails with KRAFLA_E_CLOSED. Gives all memory back. */
  async close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#host.end(new KraflaError('KRAFLA_E_CLOSED', 'the model was closed'));
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.close();
  }
}
