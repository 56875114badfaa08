// chat.js - a conversation: a list of messages, and the model's template around it.

import { CHAT, SEND, checkMessages, checkOptions, checkText } from './options.js';
import { KraflaError } from './errors.js';

export class Chat {
  #generate;
  #options;
  #messages;
  #busy;

  /**
   * @param {(messages: object[], options: object, onEnd: Function) => import('./answer.js').Answer} generate
   * @param {object} given system: the first message; messages: to begin with; and what generate() takes, for all answers
   */
  constructor(generate, given) {
    const { system, messages, ...options } = checkOptions(given, CHAT);
    this.#generate = generate;
    this.#options = options;
    this.#messages = messages === undefined || messages.length === 0 ? [] : checkMessages(messages);
    if (system !== undefined) this.#messages.unshift({ role: 'system', content: system });
  }

  /** The messages so far, the system's first, as a copy. */
  get history() {
    return this.#messages.map((message) => ({ ...message }));
  }

  /**
   * The answer to a message. Once it is complete, or was stopped, both are part of the history; if it fails or is
   * aborted, neither is.
   */
  send(text, options = {}) {
    return this.#answer([...this.#messages, { role: 'user', content: checkText('text', text) }], options);
  }

  /** Another answer to the last message of the user, in place of the one it got. */
  regenerate(options = {}) {
    const messages = [...this.#messages];
    while (messages.length > 0 && messages.at(-1).role !== 'user') messages.pop();
    if (messages.length === 0) throw new KraflaError('ML_E_STATE', 'regenerate: there is no message to answer');
    return this.#answer(messages, options);
  }

  /** A conversation of its own that begins with the same messages. */
  fork() {
    return new Chat(this.#generate, { ...this.#options, messages: this.history });
  }

  #answer(messages, given) {
    const options = { ...this.#options, ...checkOptions(given, SEND) };
    if (this.#busy) throw new KraflaError('ML_E_STATE', 'the chat is still answering: wait for that, or stop it');
    this.#busy = true;
    return this.#generate(messages, options, (answer, result) => {
      this.#busy = false;
      if (result) this.#messages = [...messages, { role: 'assistant', content: result.text }];
    });
  }
}
