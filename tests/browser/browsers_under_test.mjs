// The browsers that tests run in, each behind the same few functions of a page.
//
// A page has goto, evaluate, waitForSelector, click, type and keyboard.press, with the meaning that they have in Playwright
// and Puppeteer.
import fs from 'node:fs';
import { launchChromium } from './chromium.mjs';
import { launchWebKit, whyNoWebKit } from './webkit.mjs';

const FIREFOX = '/usr/bin/firefox-esr';
const MINUTES = 60_000;

async function launchFirefox() {
  const { default: puppeteer } = await import('puppeteer-core');
  const browser = await puppeteer.launch({
    browser: 'firefox', // by WebDriver BiDi
    executablePath: FIREFOX,
    headless: true,
    protocolTimeout: 10 * MINUTES,
  });
  return { page: await browser.newPage(), close: () => browser.close() };
}

async function launchWithPlaywright() {
  const browser = await launchChromium();
  return { page: await browser.newPage(), close: () => browser.close() };
}

/**
 * whyNot: why it cannot run here, or undefined; relaxed: whether it has relaxed SIMD, without which SIMD128 is what it runs.
 * @type {Record<string, { whyNot: () => string | undefined, launch: () => Promise<{ page: object, close: () => Promise<void> }>,
 *   relaxed: boolean }>}
 */
export const BROWSERS = {
  Chromium: { whyNot: () => undefined, launch: launchWithPlaywright, relaxed: true }, // without it the suites are skipped
  Firefox: {
    whyNot: () => (fs.existsSync(FIREFOX) ? undefined : 'no Firefox (tools/setup-browser.sh)'),
    launch: launchFirefox,
    relaxed: true,
  },
  WebKit: { whyNot: whyNoWebKit, launch: launchWebKit, relaxed: false },
};
