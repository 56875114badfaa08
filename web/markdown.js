// markdown.js - what a model writes, as HTML that can do no harm.
//
// A model's text is as little to be trusted as any stranger's: it is parsed by marked, cleaned by DOMPurify, and of what
// is left only plain typography stays. Nothing in it loads anything, and a link goes nowhere without a click.

import createDOMPurify from 'dompurify';
import { Marked } from 'marked';

const TAGS = 'p br hr strong em del code pre blockquote ul ol li table thead tbody tr th td h3 h4 h5 h6 a'.split(' ');
const ATTRIBUTES = ['href', 'start', 'align'];
const WEB_ADDRESS = /^https?:/i;
const OPEN_BLOCKS = 2;

const escape = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

// Single line breaks are meant as such; headings of an answer come below the page's own.
const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    heading({ tokens, depth }) {
      const level = Math.min(depth + 2, 6);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    html: ({ text, block }) => (block ? `<p>${escape(text)}</p>` : escape(text)), // shown, not obeyed
    image: ({ text }) => escape(text),
  },
});

const purifier = createDOMPurify(window);
purifier.addHook('afterSanitizeAttributes', (node) => {
  if (node.nodeName !== 'A') return;
  if (!WEB_ADDRESS.test(node.getAttribute('href') ?? '')) {
    node.removeAttribute('href');
    return;
  }
  node.setAttribute('target', '_blank');
  node.setAttribute('rel', 'noopener noreferrer nofollow');
});

/** Of HTML that marked has made. @returns {DocumentFragment} */
function clean(html) {
  return purifier.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
}

/** @returns {DocumentFragment} */
export const renderMarkdown = (text) => clean(marked.parse(text));

/**
 * A text that grows at its end, in an element that nobody else changes. What more text can still change are the last blocks
 * (paragraphs, lists and so on); those before them are neither parsed again nor touched, so that a long answer costs no more
 * at its end than at its beginning.
 */
export class GrowingMarkdown {
  #body;
  #settled = 0; // characters of blocks that stay as they are
  #open = []; // nodes of the others
  #hasLinks = false; // definitions of links, which may be used in any block before

  /** @param {HTMLElement} body empty */
  constructor(body) {
    this.#body = body;
  }

  /** @param {string} text begins with that of the last time */
  update(text) {
    const unread = text.replaceAll(/\r\n?/g, '\n').slice(this.#settled); // as the parser counts
    for (const node of this.#open.splice(0)) node.remove();
    const blocks = marked.lexer(unread);
    this.#hasLinks ||= Object.keys(blocks.links).length > 0;
    const settled = blocks.splice(0, firstOpen(blocks));
    for (const { raw } of settled) this.#settled += raw.length;
    this.#append(settled);
    this.#open = this.#append(blocks);
  }

  /** There will be no more. */
  finish(text) {
    if (this.#hasLinks) this.#body.replaceChildren(renderMarkdown(text));
    else this.update(text);
  }

  #append(blocks) {
    if (blocks.length === 0) return [];
    const fragment = clean(marked.parser(blocks));
    const nodes = [...fragment.childNodes];
    this.#body.append(fragment);
    return nodes;
  }
}

/** Index of the first block that more text may change: the last one; and the one before, to be on the safe side. */
function firstOpen(blocks) {
  let index = blocks.length;
  for (let open = 0; open < OPEN_BLOCKS && index > 0;) if (blocks[--index].type !== 'space') open++;
  return index;
}
