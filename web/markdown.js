// markdown.js - what a model writes, as HTML that can do no harm.
//
// A model's text is as little to be trusted as any stranger's: it is parsed by marked, cleaned by DOMPurify, and of what
// is left only plain typography stays. Nothing in it loads anything, and a link goes nowhere without a click.

import createDOMPurify from 'dompurify';
import { Marked } from 'marked';

const TAGS = 'p br hr strong em del code pre blockquote ul ol li table thead tbody tr th td h3 h4 h5 h6 a'.split(' ');
const ATTRIBUTES = ['href', 'start', 'align'];
const WEB_ADDRESS = /^https?:/i;

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

/** @returns {DocumentFragment} */
export function renderMarkdown(text) {
  return purifier.sanitize(marked.parse(text), {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
}
