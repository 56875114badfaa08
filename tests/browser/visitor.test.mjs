// A visitor of the demo page in Chromium, from the address that the server prints to an answer that is right.
//
// SmolLM2 is fetched and converted by the demo's own way if it is not there; where that cannot be done its tests are
// skipped, and say why. Screenshots go to build/screenshots.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test, { after, before } from 'node:test';
import { gzipSync } from 'node:zlib';
import { launchChromium } from './chromium.mjs';
import axe from 'axe-core';
import { build } from 'esbuild';
import { ROOT, Visitor, filesOf, startServer } from './demo_page.mjs';
import { fetchSmolLM2, SMOLLM2 } from './smollm2.mjs';

const BUNDLED = path.join(ROOT, 'examples/models/stories');
const DESKTOP = { viewport: { width: 1280, height: 800 } };
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

let browser;
before(async () => {
  browser = await launchChromium();
});
after(() => browser?.close());

/** Serves, opens the printed address, calls `use(visitor, server)`; the page must have had no error by the end. */
async function visit({ open, models, isolated, context = DESKTOP, errorsExpected = false }, use) {
  const server = await startServer({ models, open, isolated });
  const session = await browser.newContext(context);
  try {
    const visitor = new Visitor(await session.newPage());
    await visitor.page.goto(server.address);
    await use(visitor, server);
    if (!errorsExpected) assert.deepEqual(visitor.errors, []);
  } finally {
    await session.close();
    assert.equal(await server.stop(), 0);
  }
}

/** Skips where the model cannot be had. */
function needSmolLM2(t) {
  const problem = fetchSmolLM2();
  if (problem) t.skip(problem);
  return !problem;
}

/** Small packages with random weights and a chat template. */
const tinyPackage = (name) => path.join(ROOT, 'build/packages', name);

// ---------------------------------------------------------------- SmolLM2

test('SmolLM2 answers, remembers, is stopped and asked again', async (t) => {
  if (!needSmolLM2(t)) return;
  await visit({ models: { smollm2: SMOLLM2 }, open: 'smollm2' }, async (visitor) => {
    const { page } = visitor;
    await page
      .locator('#load-words')
      .filter({ hasText: /^[\d.]+ of 93 MB/ })
      .waitFor();
    await visitor.screenshot('desktop-light-loading');
    await visitor.waitForModel();
    assert.equal(await visitor.announced(), 'SmolLM2 135M Instruct is ready.');
    assert.equal(await visitor.focused(), 'text');
    assert.match(await page.locator('#build').textContent(), /^(relaxed|simd128)(-threads, \d+ threads|, 1 thread)$/);

    await t.test('the capital of France', async () => {
      assert.match(await visitor.ask('What is the capital of France?'), /Paris/);
      assert.match(await visitor.announced(), /^Answer: .*Paris/);
      assert.match(await page.locator('#speed').textContent(), /^[\d.]+ tokens\/s$/);
    });

    await t.test('a second turn that depends on the first', async () => {
      assert.match(await visitor.ask('What language do people speak there?'), /French/);
      assert.equal(await visitor.entries(), 4);
      await page.locator('#clear').click();
      assert.equal(await visitor.entries(), 0);
      await visitor.ask('What is the capital of Germany?');
      const other = await visitor.ask('What language do people speak there?');
      assert.match(other, /German/);
      assert.doesNotMatch(other, /French/);
    });

    await t.test('the same question again: regenerated greedily, the same answer', async () => {
      const first = await page.locator('article.assistant .body').last().textContent();
      await page.getByRole('button', { name: 'Regenerate' }).click();
      assert.equal(await visitor.answer(), first);
      assert.equal(await visitor.entries(), 4);
    });

    await t.test('a long answer is stopped half way, and the next question is answered', async () => {
      await page.locator('#clear').click();
      await visitor.say('Tell me a long story about a lighthouse.');
      await visitor.answerOfLength(60);
      await visitor.screenshot('desktop-light-answering');
      assert.equal(await page.locator('article[aria-busy="true"]').count(), 1);
      await page
        .locator('#context-words')
        .filter({ hasText: /^context [1-9]/ })
        .waitFor();
      const pressed = Date.now();
      await page.getByRole('button', { name: 'Stop' }).click();
      const story = await visitor.answer(5_000);
      assert.ok(Date.now() - pressed < 5_000, `${Date.now() - pressed} ms until it stopped`);
      assert.match(await page.locator('.note').textContent(), /^Stopped/);
      await page.waitForTimeout(500);
      assert.equal(await page.locator('article.assistant .body').last().textContent(), story);
      assert.equal(await visitor.focused(), 'text');
      await page.locator('#clear').click();
      assert.match(await visitor.ask('What is the capital of France?'), /Paris/);
    });

    await t.test('Escape stops, too', async () => {
      await visitor.say('Tell me a long story about a lighthouse.');
      await visitor.answerOfLength(20);
      await page.keyboard.press('Escape');
      await visitor.answer(5_000);
      assert.match(await page.locator('.note').textContent(), /^Stopped/);
      await visitor.say('Tell me another one.');
      await page.keyboard.press('Escape'); // maybe before there is a word
      await visitor.answer(5_000);
      assert.match(await page.locator('.note').textContent(), /^Stopped/);
    });

    await t.test('the page stays quick while it answers', async () => {
      await page.locator('#clear').click();
      await visitor.setting('maxTokens', '150');
      await page.evaluate(() => {
        globalThis.blocked = [];
        globalThis.renderings = 0;
        new PerformanceObserver((list) => {
          for (const { duration } of list.getEntries()) globalThis.blocked.push(duration);
        }).observe({ type: 'longtask' });
        const count = () => globalThis.renderings++;
        new MutationObserver(count).observe(document.querySelector('#transcript'), { childList: true, subtree: true });
      });
      await visitor.ask('Write a short poem about rain.');
      const { blocked, renderings } = await page.evaluate(() => ({
        blocked: globalThis.blocked,
        renderings: globalThis.renderings,
      }));
      t.diagnostic(`${renderings} renderings, tasks above 50 ms: ${JSON.stringify(blocked)}`);
      // A machine that is busy with something else may well take some of them their processor (markdown.test.mjs is exact).
      assert.ok(renderings > 5 && blocked.length <= renderings / 5, `${blocked.length} of ${renderings} above 50 ms`);
    });
  });
});

test('without cross-origin isolation: one thread, the same answer', async (t) => {
  if (!needSmolLM2(t)) return;
  await visit({ models: { smollm2: SMOLLM2 }, open: 'smollm2', isolated: false }, async (visitor) => {
    await visitor.waitForModel();
    assert.match(await visitor.page.locator('#build').textContent(), /^(relaxed|simd128), 1 thread$/);
    assert.match(await visitor.ask('What is the capital of France?'), /Paris/);
  });
});

// ---------------------------------------------------------------- packages that a visitor brings

test('the bundled model is dropped, and goes on with a text', async (t) => {
  if (!fs.existsSync(path.join(BUNDLED, 'model.json'))) return t.skip('no bundled model: examples/models/stories');
  await visit({}, async (visitor) => {
    const { page } = visitor;
    await page.locator('#picker').waitFor();
    await visitor.drop(filesOf(BUNDLED));
    await visitor.waitForModel();
    assert.equal(await page.locator('#send').textContent(), 'Continue');
    await visitor.setting('maxTokens', '30');
    await page.getByRole('button', { name: 'Once upon a time' }).click();
    const beginning = await visitor.answer();
    assert.match(beginning, /[a-z]{3}/);
    assert.match(await page.locator('.note').textContent(), /limit/);
    await visitor.setting('maxTokens', '400');
    await visitor.say(''); // nothing new: it goes on where it was
    const rest = await visitor.answer();
    assert.ok(rest.length > beginning.length, rest);
    assert.match(await page.locator('.note').textContent(), /^The end/);
    assert.equal(await visitor.entries(), 3);
    await visitor.screenshot('desktop-light-story');
  });
});

test('a package of files is dropped: it loads, generates, is stopped, and another one takes its place', async () => {
  const folder = tinyPackage('llama');
  await visit({ models: { tiny: folder } }, async (visitor) => {
    const { page } = visitor;
    await page.locator('#picker').waitFor();
    await visitor.drop(filesOf(folder));
    await visitor.waitForModel();
    assert.equal(await page.locator('#model-name').textContent(), 'tiny llama');
    assert.match(await page.locator('#context-words').textContent(), /^context 0 of 512$/);
    assert.ok((await visitor.ask('Hello')).length > 0); // random weights: any text will do
    assert.match(await page.locator('.note').textContent(), /limit/); // it never ends by itself
    await visitor.drop(filesOf(folder));
    await page.locator('.ideas').waitFor();
    assert.equal(await visitor.entries(), 0);
    await visitor.say('Hello');
    await page.getByRole('button', { name: 'Model', exact: true }).click(); // in the middle of an answer
    await page.locator('[data-model=tiny]').click();
    await page.locator('.ideas').waitFor();
    assert.ok((await visitor.ask('Hello')).length > 0);
  });
});

test('a conversation that has outgrown the context: said in words, and cleared', async () => {
  await visit({ models: { tiny: tinyPackage('llama') }, open: 'tiny' }, async (visitor) => {
    const { page } = visitor;
    await visitor.waitForModel();
    await page.locator('#text').fill('too long '.repeat(400));
    await page.keyboard.press('Enter');
    await page.locator('#problem p').first().waitFor();
    assert.match(await visitor.problem(), /grown too long for the model \(\d+ of 512 tokens\)/);
    await page.locator('#problem').getByRole('button', { name: 'Clear' }).click();
    assert.equal(await visitor.problem(), '');
    assert.ok((await visitor.ask('Hello')).length > 0);
  });
});

test('what is no package is refused in words, and the next one loads', async (t) => {
  const files = filesOf(tinyPackage('llama'));
  const without = (kind) => files.filter(({ name }) => !name.endsWith(kind));
  const changed = (kind, change) =>
    files.map((file) => (file.name.endsWith(kind) ? { ...file, bytes: change(file.bytes) } : file));
  const CASES = {
    'no model in it': [without('.mlb'), /no \.mlb file/],
    'a picture': [[{ name: 'cat.png', bytes: Buffer.from('x') }], /no file of a model/],
    'no tokenizer': [without('.mlt'), /no complete model package/],
    'a manifest that is no JSON': [changed('.json', () => Buffer.from('{')), /no complete model package/],
    'a model cut short': [changed('.mlb', (bytes) => bytes.subarray(0, 5000)), /another size/],
    'a damaged model': [
      changed('.mlb', (bytes) =>
        Buffer.concat([bytes.subarray(0, 4000), Buffer.from([bytes[4000] ^ 1]), bytes.subarray(4001)]),
      ),
      /damaged/,
    ],
    'no model file at all': [
      changed('.mlb', (bytes) => Buffer.alloc(bytes.length)).filter(({ name }) => name !== 'model.json'),
      /no model that can be read/,
    ],
  };
  await visit({}, async (visitor) => {
    const { page } = visitor;
    await page.locator('#picker').waitFor();
    for (const [name, [dropped, words]] of Object.entries(CASES))
      await t.test(name, async () => {
        await visitor.drop(dropped);
        await page.locator('#problem p', { hasText: words }).first().waitFor({ timeout: 10_000 });
        await page.locator('#problem').getByRole('button', { name: 'Close' }).click();
        assert.equal(await visitor.problem(), '');
      });
    await visitor.drop(files);
    await visitor.waitForModel();
    assert.ok((await visitor.ask('Hello')).length > 0);
  });
});

test('loading is cancelled, and a server that fails is told of', async () => {
  await visit({ models: { tiny: tinyPackage('llama') }, errorsExpected: true }, async (visitor) => {
    const { page } = visitor;
    await page.route('**/model.mlb', () => {}); // never answers
    await page.locator('[data-model=tiny]').click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.locator('#picker').waitFor();
    assert.equal(await visitor.announced(), 'Loading was cancelled.');
    await page.unroute('**/model.mlb');
    await page.route('**/model.mlb', (route) => route.fulfill({ status: 404 }));
    await page.locator('[data-model=tiny]').click();
    await page.locator('#problem p', { hasText: '404' }).first().waitFor();
    await page.unroute('**/model.mlb');
    await page.getByRole('button', { name: 'Try again' }).click();
    await visitor.waitForModel();
    assert.ok((await visitor.ask('Hello')).length > 0);
  });
});

// ---------------------------------------------------------------- for everybody

test('accessibility: what axe looks for, and the keyboard alone', async (t) => {
  await visit({ models: { tiny: tinyPackage('llama') } }, async (visitor) => {
    const { page } = visitor;
    const inspect = async (where) => {
      await page.evaluate(axe.source);
      const { violations, passes } = await page.evaluate(() => globalThis.axe.run());
      assert.deepEqual(
        violations.map(({ id, nodes }) => `${where}: ${id}: ${nodes.map((node) => node.html).join(' ')}`),
        [],
      );
      assert.ok(passes.length > 10);
    };
    await page.locator('[data-model=tiny]').waitFor();
    await t.test('models', () => inspect('models'));
    await page.keyboard.press('Tab'); // skip link
    for (let i = 0; i < 5 && !(await page.evaluate(() => document.activeElement.dataset.model)); i++)
      await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await visitor.waitForModel();
    await t.test('ready', () => inspect('ready'));
    await page.keyboard.type('Hello');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('you');
    assert.equal(await page.locator('#text').inputValue(), 'Hello\nyou');
    await page.keyboard.press('Enter');
    await visitor.answer();
    await t.test('an answer', () => inspect('an answer'));
    await page.getByRole('button', { name: 'Settings' }).focus();
    await page.keyboard.press('Enter');
    await page.locator('#settings').waitFor();
    await t.test('settings', () => inspect('settings'));
    assert.ok(await page.evaluate(() => document.activeElement.closest('#settings') !== null));
    await page.keyboard.press('Escape');
    assert.equal(await visitor.focused(), 'settings-button');
    await t.test('no live region says an answer piece by piece', async () => {
      const live = await page
        .locator('[aria-live], [role=log], [role=status], [role=alert]')
        .evaluateAll((all) => all.map(({ id }) => id));
      assert.deepEqual(live.sort(), ['announcer', 'problem']);
    });
  });
});

test('what a model writes can do no harm', async () => {
  await visit({}, async (visitor) => {
    const { page } = visitor;
    await page.locator('#picker').waitFor();
    const written = [
      '<img src=x onerror=alert(1)> <script>alert(1)</script> ![a](https://example.org/a.png)',
      '[run](javascript:alert(1)) [go](https://example.org/) <a href="data:text/html,x" onclick=alert(1)>b</a>',
      '<style>body{display:none}</style><form action=/x><input></form>',
      '**bold** `code`',
      '# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |',
    ];
    // The page's own renderer, under the page's own policy.
    const bundle = { entryPoints: [path.join(ROOT, 'web/markdown.js')], bundle: true, format: 'esm', write: false };
    const { outputFiles } = await build(bundle);
    const answer = { contentType: 'text/javascript', body: outputFiles[0].text };
    await page.route('**/markdown.js', (route) => route.fulfill(answer));
    const { html, elements } = await page.evaluate(async (text) => {
      const { renderMarkdown } = await import('./markdown.js');
      const box = document.createElement('div');
      box.append(renderMarkdown(text));
      const names = ({ attributes }) => [...attributes].map(({ name }) => name);
      return {
        html: box.innerHTML,
        elements: [...box.querySelectorAll('*')].map((each) => [each.localName, ...names(each)].join(' ')),
      };
    }, written.join('\n\n'));
    const allowed = /^(p|a|a href target rel|strong|code|h3|table|thead|tbody|tr|th|td)$/;
    assert.deepEqual(
      elements.filter((each) => !allowed.test(each)),
      [],
    );
    assert.deepEqual(html.match(/<[^>]* href="[^"]*/g), ['<a href="https://example.org/']);
    for (const kept of [
      '&lt;script&gt;',
      '<strong>bold</strong>',
      '<code>code</code>',
      '<h3>Title</h3>',
      '<td>1</td>',
      '>run<',
    ])
      assert.ok(html.includes(kept), `${kept} in ${html}`);
  });
});

test('the server: headers, ranges, revalidation, nothing outside its folders', async () => {
  const folder = tinyPackage('llama');
  const server = await startServer({ models: { tiny: folder }, open: 'tiny' });
  try {
    assert.match(server.address, /^http:\/\/localhost:\d+\/\?model=tiny$/);
    const get = (where, headers = {}) => fetch(new URL(where, server.address), { headers });
    const page = await get('/');
    assert.match(
      page.headers.get('content-security-policy'),
      /^default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'/,
    );
    assert.equal(page.headers.get('cross-origin-opener-policy'), 'same-origin');
    assert.equal(page.headers.get('cross-origin-embedder-policy'), 'require-corp');
    assert.equal((await get('/wasm/simd128.wasm')).headers.get('content-type'), 'application/wasm');
    const part = await get('/models/tiny/model.mlb', { Range: 'bytes=4-11' });
    assert.equal(part.status, 206);
    assert.deepEqual(
      new Uint8Array(await part.arrayBuffer()),
      new Uint8Array(fs.readFileSync(path.join(folder, 'model.mlb')).subarray(4, 12)),
    );
    const etag = page.headers.get('etag');
    assert.equal((await get('/', { 'If-None-Match': etag })).status, 304);
    for (const where of [
      '/nothing',
      '/models/tiny/nothing',
      '/models/other/model.json',
      '/models/tiny/%2e%2e/%2e%2e/Makefile',
      '/..%2fMakefile',
    ])
      assert.equal((await get(where)).status, 404, where);
    assert.equal((await fetch(server.address, { method: 'POST' })).status, 405);
  } finally {
    assert.equal(await server.stop(), 0);
  }
});

test('what a visit takes, before the model: 250 kB compressed at most, and one wasm module', async (t) => {
  const server = await startServer({ models: { tiny: tinyPackage('llama') }, open: 'tiny' });
  const session = await browser.newContext(DESKTOP);
  try {
    const visitor = new Visitor(await session.newPage());
    const bodies = new Map(); // path to size; a file that is asked for twice comes from the cache
    const received = [];
    visitor.page.context().on('response', (response) => {
      const { pathname } = new URL(response.url());
      if (pathname.startsWith('/models/')) return;
      received.push(response.body().then((body) => bodies.set(pathname, gzipSync(body, { level: 9 }).length)));
    });
    await visitor.page.goto(server.address);
    await visitor.waitForModel();
    await Promise.all(received);
    const names = [...bodies.keys()];
    assert.deepEqual(
      ['/', '/main.js', '/worker.js', '/chat.css'].filter((name) => !bodies.has(name)),
      [],
    );
    assert.equal(names.filter((name) => name.endsWith('.wasm')).length, 1, names.join(' '));
    const total = [...bodies.values()].reduce((a, b) => a + b);
    t.diagnostic(`${total} bytes in ${names.length} files`);
    assert.ok(total < 250_000, `${total} bytes: ${names.join(' ')}`);
  } finally {
    await session.close();
    await server.stop();
  }
});

// ---------------------------------------------------------------- what it looks like

for (const [device, context] of Object.entries({ desktop: DESKTOP, phone: PHONE }))
  for (const colorScheme of ['light', 'dark'])
    test(`what it looks like: ${device}, ${colorScheme}`, async (t) => {
      if (!needSmolLM2(t)) return;
      const models = { smollm2: SMOLLM2, ...(fs.existsSync(BUNDLED) && { stories: BUNDLED }) };
      await visit({ models, context: { ...context, colorScheme } }, async (visitor) => {
        const { page } = visitor;
        const name = (what) => `${device}-${colorScheme}-${what}`;
        await page.locator('#models button').first().waitFor();
        await visitor.screenshot(name('models'));
        await page.locator('[data-model=smollm2]').click();
        await visitor.waitForModel();
        await visitor.screenshot(name('ready'));
        await visitor.ask('What is the capital of France?');
        await visitor.ask('Write a Python function that adds two numbers.');
        await visitor.screenshot(name('answers'));
        const outside = await page
          .locator('button:visible')
          .evaluateAll((all) =>
            all.filter((each) => each.getBoundingClientRect().right > innerWidth).map(({ textContent }) => textContent),
          );
        assert.deepEqual(outside, [], 'buttons beyond the edge');
        await page.getByRole('button', { name: 'Settings' }).click();
        await visitor.screenshot(name('settings'));
        await page.keyboard.press('Escape');
        await visitor.drop([{ name: 'model.json', bytes: Buffer.from('{}') }]);
        await page.locator('#problem p').first().waitFor();
        await visitor.screenshot(name('problem'));
        const below = () => {
          const { scrollHeight, scrollTop, clientHeight } = document.querySelector('#transcript');
          return scrollHeight - scrollTop - clientHeight;
        };
        assert.ok((await page.evaluate(below)) < 2, 'the end of the answer is no longer to be seen');
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(width <= context.viewport.width, `the page is ${width} pixels wide`);
      });
    });
