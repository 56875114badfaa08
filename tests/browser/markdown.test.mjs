// An answer that grows on the page: at every moment it looks as if it had been rendered as a whole, and yet only its end is.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test, { before } from 'node:test';
import { build } from 'esbuild';
import { withPage } from './chromium.mjs';
import { ROOT } from './demo_page.mjs';

const BUNDLE = path.join(ROOT, 'build/web-test/markdown.js');

before(async () => {
  await build({ entryPoints: [path.join(ROOT, 'web/markdown.js')], bundle: true, format: 'esm', outfile: BUNDLE });
  assert.ok(fs.existsSync(BUNDLE));
});

const inPage = (use, given) =>
  withPage({ extra: { '/markdown.js': BUNDLE } }, async (page) => page.evaluate(use, given));

const EVERYTHING = `First words, **bold**, *slanted*, \`code\` and
a line break. <b>no HTML</b> & "signs".

A title
=======

# Another one

- a list
- of things

  with a paragraph

  - and a list in it
- that goes on


- after a gap

3. numbers
4. that begin at three

> said by somebody
continued lazily

\`\`\`python
def f(x):

    return x  # - no list
\`\`\`

    code by blanks

    and more

| a | b |
|---|:-:|
| 1 | 2 |
| 3 | 4 |
no longer a table?

***

<div>
html

- [x] done\r
- [ ] not done\r
\r
https://example.org/ and [a link](https://example.org/ "title") at the end`;

test('it looks as if it had been rendered as a whole', async () => {
  const different = await inPage(async (text) => {
    const { GrowingMarkdown, renderMarkdown } = await import('/markdown.js');
    const wrong = [];
    for (const step of [1, 2, 7, 50]) {
      const body = document.createElement('div');
      const growing = new GrowingMarkdown(body);
      const whole = document.createElement('div');
      for (let end = 0; end < text.length + step; end += step) {
        growing.update(text.slice(0, end));
        whole.replaceChildren(renderMarkdown(text.slice(0, end)));
        if (body.innerHTML !== whole.innerHTML) wrong.push([step, end, body.innerHTML, whole.innerHTML]);
      }
      growing.finish(text);
      if (body.innerHTML !== whole.innerHTML) wrong.push([step, 'finished', body.innerHTML, whole.innerHTML]);
    }
    return wrong.slice(0, 2);
  }, EVERYTHING);
  assert.deepEqual(different, []);
});

test('a link that is defined later is one by the end', async () => {
  const html = await inPage(async () => {
    const { GrowingMarkdown } = await import('/markdown.js');
    const body = document.createElement('div');
    const growing = new GrowingMarkdown(body);
    const text = 'See [there].\n\nOne.\n\nTwo.\n\nThree.\n\n[there]: https://example.org/\n\nFour.\n\nFive.\n\nSix.';
    for (let end = 0; end <= text.length; end++) growing.update(text.slice(0, end));
    growing.finish(text);
    return body.innerHTML;
  });
  assert.match(html, /^<p>See <a href="https:\/\/example.org\/"[^>]*>there<\/a>/);
  assert.match(html, /Six/);
});

test('what is drawn for a piece does not grow with the answer', async () => {
  const { most, blocks } = await inPage(async () => {
    const { GrowingMarkdown } = await import('/markdown.js');
    const body = document.createElement('div');
    const growing = new GrowingMarkdown(body);
    const observer = new MutationObserver(() => {});
    observer.observe(body, { childList: true });
    let text = '';
    let largest = 0;
    for (let i = 0; i < 2000; i++) {
      text += i % 5 === 4 ? '.\n\n' : ` word ${i}`;
      growing.update(text);
      const touched = observer
        .takeRecords()
        .map(({ addedNodes, removedNodes }) => addedNodes.length + removedNodes.length);
      largest = Math.max(
        largest,
        touched.reduce((a, b) => a + b, 0),
      );
    }
    return { most: largest, blocks: body.children.length };
  });
  assert.equal(blocks, 400);
  assert.ok(most > 0 && most <= 12, `${most} nodes added and removed for one piece`);
});
