// transcript.js - the conversation as it is seen: an article for each entry, the last one growing while it is written.
//
// It is no live region: read aloud piece by piece an answer cannot be followed. main.js announces it when it is whole.

import { GrowingMarkdown } from './markdown.js';

const RENDER_MS = 50; // from one rendering to the next at least: nobody reads faster
const RENDER_SHARE = 5; // and it takes at most one part in six of the time
const NEAR_END = 80; // pixels; who has scrolled further up wants to read there

const THE_END = 'The end. Clear begins another one.'; // of a text; an answer is just an answer
const FINISHES = {
  length: 'It ended at a limit: of the length (Settings), or of the context.',
  stopped: 'Stopped.',
};

export class Transcript {
  #root;
  #isChat = true;
  #wasAtEnd = true;
  #growing; // { entry, body, article, markdown } of the answer that is being written

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
    root.addEventListener('scroll', () => (this.#wasAtEnd = this.#isAtEnd), { passive: true });
    // Room that a problem's words or a phone's keyboard take: who was at the end stays there.
    new ResizeObserver(() => this.#toEnd(this.#wasAtEnd)).observe(root);
  }

  /** Begins anew. @param {{ isChat: boolean, ideas: string[], onIdea: (text: string) => void }} what */
  reset({ isChat, ideas, onIdea }) {
    this.#isChat = isChat;
    this.#growing = undefined;
    const hint = element(
      'p',
      isChat ? 'Ask something, for example:' : 'This model goes on with a text. Begin one, for example:',
    );
    const list = element(
      'ul',
      ideas.map((idea) => element('li', [button(idea, () => onIdea(idea))])),
    );
    this.#root.replaceChildren(element('div', [hint, list], 'ideas'));
    this.#root.classList.toggle('text', !isChat);
  }

  add(entry) {
    this.#root.querySelector('.ideas')?.remove();
    this.#dropActions();
    const body = element('div', [], 'body');
    const who = entry.role === 'user' ? 'You' : 'Model';
    const article = element(
      'article',
      [element('h3', who, this.#isChat ? 'who' : 'visually-hidden'), body],
      entry.role,
    );
    article.setAttribute('aria-label', who);
    this.#root.append(article);
    if (entry.role === 'assistant') this.#grow(entry, body, article);
    else body.textContent = entry.text;
    this.#toEnd(true);
  }

  /** An answer has been asked for, and nothing of it is there yet. */
  wait() {
    this.#dropActions();
    this.#root.append(element('p', [element('span', '', 'caret')], 'waiting'));
    this.#toEnd(true);
  }

  #grow(entry, body, article) {
    article.setAttribute('aria-busy', 'true');
    const markdown = this.#isChat ? new GrowingMarkdown(body) : undefined;
    this.#growing = { entry, body, article, markdown, caret: element('span', '', 'caret') };
    this.#draw(this.#growing);
  }

  /** The growing entry has more text. What is drawn may lag behind it a little. */
  more() {
    const growing = this.#growing;
    if (!growing || growing.timer) return;
    growing.timer = setTimeout(() => {
      growing.timer = undefined;
      if (growing !== this.#growing) return;
      const started = performance.now();
      this.#draw(growing);
      growing.pause = Math.max(RENDER_MS, (performance.now() - started) * RENDER_SHARE);
    }, growing.pause ?? 0);
  }

  #draw({ body, entry, markdown, caret }, isWhole = false) {
    const atEnd = this.#isAtEnd;
    caret.remove();
    if (!markdown) body.textContent = entry.text;
    else if (isWhole) markdown.finish(entry.text);
    else markdown.update(entry.text);
    if (!isWhole) ((markdown && lastBlock(body)) ?? body).append(caret);
    this.#toEnd(atEnd);
  }

  /**
   * The growing entry is whole; one without text goes.
   * @param {{ onRegenerate: () => void, onCopy: (text: string) => void }} actions
   */
  finish({ onRegenerate, onCopy }) {
    const growing = this.#growing;
    if (!growing) return;
    this.#growing = undefined;
    clearTimeout(growing.timer);
    if (growing.entry.text === '') {
      growing.article.remove();
    } else {
      this.#draw(growing, true);
      growing.article.removeAttribute('aria-busy');
    }
    this.offerAgain(
      onRegenerate,
      growing.entry.text && (() => onCopy(growing.entry.text)),
      this.#noteOf(growing.entry),
    );
  }

  #noteOf({ finish }) {
    return finish === 'stop' && !this.#isChat ? THE_END : FINISHES[finish];
  }

  /** Buttons below the last entry. */
  offerAgain(onRegenerate, onCopy, note) {
    this.#dropActions();
    const atEnd = this.#isAtEnd;
    const parts = [button(onCopy ? 'Regenerate' : 'Try again', onRegenerate)];
    if (onCopy) parts.push(button('Copy', onCopy));
    if (note) parts.push(element('span', note, 'note'));
    this.#root.append(element('div', parts, 'actions'));
    this.#toEnd(atEnd);
  }

  /** Takes the last answer out. */
  takeBack() {
    this.#dropActions();
    const last = this.#root.lastElementChild;
    if (last?.classList.contains('assistant')) last.remove();
  }

  #dropActions() {
    this.#root.querySelector('.actions, .waiting')?.remove();
  }

  get #isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#root;
    return scrollHeight - scrollTop - clientHeight < NEAR_END;
  }

  #toEnd(wanted) {
    if (!wanted) return;
    this.#root.scrollTop = this.#root.scrollHeight;
    this.#wasAtEnd = true;
  }
}

/** Where a caret belongs: in the last line, not below it. */
function lastBlock(body) {
  let block = body.lastElementChild;
  while (block && /^(UL|OL|LI|BLOCKQUOTE|PRE|TABLE|TBODY|TR)$/.test(block.tagName) && block.lastElementChild)
    block = block.lastElementChild;
  return block;
}

export function element(name, content, className) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (Array.isArray(content)) made.append(...content);
  else made.textContent = content;
  return made;
}

export function button(text, onClick) {
  const made = element('button', text);
  made.type = 'button';
  made.addEventListener('click', onClick);
  return made;
}
