// The demo page in Debian's Firefox, driven by WebDriver BiDi: loads the bundled model, gives an answer, is stopped, and
// gives another one. What else a visitor can do is tried in Chromium (visitor.test.mjs).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import puppeteer from 'puppeteer-core';
import { ROOT, startServer } from './demo_page.mjs';

const FIREFOX = '/usr/bin/firefox-esr';
const BUNDLED = path.join(ROOT, 'examples/models/stories');
const PATIENCE = { timeout: 60_000 };

const skip = fs.existsSync(FIREFOX) ? false : 'no Firefox (tools/setup-browser.sh)';

for (const isolated of [true, false])
  test(`Firefox, ${isolated ? 'with' : 'without'} cross-origin isolation`, { skip }, async () => {
    const server = await startServer({ models: { stories: BUNDLED }, open: 'stories', isolated });
    const browser = await puppeteer.launch({ browser: 'firefox', executablePath: FIREFOX, headless: true });
    try {
      const page = await browser.newPage();
      const errors = [];
      page.on('pageerror', (error) => errors.push(String(error)));
      await page.goto(server.address);
      await page.waitForSelector('#text', { visible: true, ...PATIENCE });
      assert.equal(await page.evaluate(() => globalThis.crossOriginIsolated), isolated);
      const build = await page.$eval('#build', (each) => each.textContent);
      assert.match(build, isolated ? /^(relaxed|simd128)-threads, \d+ threads$/ : /^(relaxed|simd128), 1 thread$/);

      await page.type('#text', 'Once upon a time');
      await page.keyboard.press('Enter');
      await page.waitForSelector('.actions', PATIENCE);
      const story = await page.$eval('article.assistant', (each) => each.textContent);
      assert.match(story, /[a-z]{3}/);

      await page.click('#clear');
      await page.type('#text', 'One day, a little fox');
      await page.evaluate(() => {
        const stopAtFirstWords = (_, observer) => {
          if (!document.querySelector('article.assistant')) return;
          observer.disconnect();
          document.querySelector('#stop').click();
        };
        // In the page itself: the model is small, and done before a message from here arrives.
        new MutationObserver(stopAtFirstWords).observe(document.body, { childList: true, subtree: true });
      });
      await page.keyboard.press('Enter');
      await page.waitForSelector('.actions', PATIENCE);
      assert.match(await page.$eval('.note', (each) => each.textContent), /^Stopped/);

      await page.click('#clear');
      await page.type('#text', 'Once upon a time');
      await page.keyboard.press('Enter');
      await page.waitForSelector('.actions', PATIENCE);
      assert.deepEqual(errors, []);
    } finally {
      await browser.close();
      assert.equal(await server.stop(), 0);
    }
  });
