// The demo page in Debian's Firefox and in WebKitGTK: loads the bundled model, gives an answer, is stopped, and gives
// another one. What else a visitor can do is tried in Chromium (visitor.test.mjs).
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';
import { BROWSERS } from './browsers_under_test.mjs';
import { ROOT, startServer } from './demo_page.mjs';

const BUNDLED = path.join(ROOT, 'examples/models/stories');
const PATIENCE = { visible: true, timeout: 300_000 };

const textOf = (page, selector) =>
  page.evaluate((wanted) => document.querySelector(wanted)?.textContent ?? 'nothing is there', selector);

/** From now on the page keeps what its scripts do not catch. */
const keepErrors = (page) =>
  page.evaluate(() => {
    globalThis.uncaught = [];
    addEventListener('error', ({ message }) => globalThis.uncaught.push(message));
    addEventListener('unhandledrejection', ({ reason }) => globalThis.uncaught.push(String(reason)));
  });

async function ask(page, words) {
  await page.type('#text', words);
  await page.keyboard.press('Enter');
}

/** In the page itself: the model is small, and done before a message from here arrives. */
const stopAtFirstWords = (page) =>
  page.evaluate(() => {
    const look = (_, observer) => {
      if (!document.querySelector('article.assistant')) return;
      observer.disconnect();
      document.querySelector('#stop').click();
    };
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  });

async function visit(page, { isolated, relaxed }) {
  await page.waitForSelector('#text', PATIENCE);
  await keepErrors(page);
  assert.equal(await page.evaluate(() => globalThis.crossOriginIsolated), isolated);
  const threads = isolated && (await page.evaluate(() => navigator.hardwareConcurrency > 1));
  const build = `${relaxed ? 'relaxed' : 'simd128'}${threads ? '-threads, [2-9] threads' : ', 1 thread'}`;
  assert.match(await textOf(page, '#build'), new RegExp(`^${build}$`));

  await ask(page, 'Once upon a time');
  await page.waitForSelector('.actions', PATIENCE);
  assert.match(await textOf(page, 'article.assistant .body'), /[a-z]{3}/);

  await page.click('#clear');
  await stopAtFirstWords(page);
  await ask(page, 'One day, a little fox');
  await page.waitForSelector('.actions', PATIENCE);
  assert.match(await textOf(page, '.note'), /^Stopped/);

  await page.click('#clear');
  await ask(page, 'Once upon a time');
  await page.waitForSelector('.actions', PATIENCE);
  assert.match(await textOf(page, 'article.assistant .body'), /[a-z]{3}/);
  assert.deepEqual(await page.evaluate(() => globalThis.uncaught), []);
}

for (const name of ['Firefox', 'WebKit'])
  for (const isolated of [true, false]) {
    const { whyNot, launch, relaxed } = BROWSERS[name];
    test(`${name}, ${isolated ? 'with' : 'without'} cross-origin isolation`, { skip: whyNot() }, async () => {
      const server = await startServer({ models: { stories: BUNDLED }, open: 'stories', isolated });
      let code;
      try {
        const { page, close } = await launch();
        try {
          await page.goto(server.address);
          await visit(page, { isolated, relaxed });
        } finally {
          await close();
        }
      } finally {
        code = await server.stop();
      }
      assert.equal(code, 0);
    });
  }
