// model.js - a loaded model, as callers see it. The work is done behind a host (host.js); here are promises.

import { Answer } from './answer.js';
import { Chat } from './chat.js';
import { KraflaError } from './errors.js';
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
    const call = (method, id) => this.#host.call(method, id);
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
    return this.#inTurn('bench', rest, signal);
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
