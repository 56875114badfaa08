// conversation.js - what was said so far, and the next answer. Knows the model, and nothing of the page.
//
// A model with a chat template is asked questions; any other one goes on with a text. Both are a list of entries by turns:
// a chat is given them as messages, a text is all of them in a row.

export class Conversation {
  #model;
  #running;

  /** @type {{ role: 'user' | 'assistant', text: string, finish?: string }[]} */
  entries = [];

  constructor(model) {
    this.#model = model;
  }

  get isChat() {
    return this.#model.info.hasChatTemplate;
  }

  get isAnswering() {
    return this.#running !== undefined;
  }

  /** Tokens of the answer that is being given, and with all before it. */
  get progress() {
    const { promptTokens = 0, tokens = [] } = this.#running ?? {};
    return { tokens: tokens.length, contextUsed: promptTokens + tokens.length };
  }

  get last() {
    return this.entries.at(-1);
  }

  /** Puts in what the user says. A text goes on where it was: with a blank, if it would run into the last word. */
  say(text) {
    const joint = !this.isChat && this.last && !/\s$/.test(this.last.text) && !/^[\s.,;:!?'’)]/.test(text) ? ' ' : '';
    this.entries.push({ role: 'user', text: joint + text });
  }

  /** Takes the last answer back, so that it can be given anew. */
  takeBack() {
    if (this.last?.role === 'assistant') this.entries.pop();
  }

  clear() {
    this.stop();
    this.entries = [];
  }

  stop() {
    this.#running?.stop();
  }

  /**
   * Generates the next entry.
   * @param {object} settings as in presets.js
   * @param {{ onText: (entry: object, piece: string) => void }} receiver told of each piece
   * @returns {Promise<object>} usage, timings and so on, as generate() gives them; what it throws, this throws
   */
  async answer({ system, ...options }, { onText }) {
    const prompt = this.#prompt(system);
    const entry = { role: 'assistant', text: '' };
    const entries = this.entries; // clear() may put another list in their place
    entries.push(entry);
    try {
      const running = this.#model.generate(prompt, options);
      this.#running = running;
      for await (const piece of running) {
        entry.text += piece;
        onText(entry, piece);
      }
      const result = await running;
      entry.finish = result.finishReason;
      return result;
    } finally {
      this.#running = undefined;
      if (entry.text === '' && entries.at(-1) === entry) entries.pop();
    }
  }

  #prompt(system) {
    if (!this.isChat) return this.entries.map(({ text }) => text).join('');
    const messages = this.entries.map(({ role, text }) => ({ role, content: text }));
    return system ? [{ role: 'system', content: system }, ...messages] : messages;
  }
}
