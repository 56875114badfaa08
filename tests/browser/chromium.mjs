// A page of this checkout in Debian's Chromium: a server on localhost and a browser, for tests.
import { chromium } from 'playwright-core';
import { CHROMIUM_ARGUMENTS } from '../../tools/bench/browsers.mjs';
import { serveCheckout } from './checkout_server.mjs';

export const launchChromium = () => chromium.launch({ executablePath: '/usr/bin/chromium', args: CHROMIUM_ARGUMENTS });

/** Opens an empty page, calls `use(page)`, and closes everything. The options are those of checkout_server.mjs. */
export async function withPage(options, use) {
  const server = await serveCheckout(options);
  let browser;
  try {
    browser = await launchChromium();
    const page = await browser.newPage();
    page.on('console', (message) => console.log(`page: ${message.text()}`));
    await page.goto(server.address);
    return await use(page);
  } finally {
    await browser?.close();
    server.close();
  }
}

/** Runs a task of engine_worker.mjs in a worker of the page; resolves to its answer. */
export function runInWorker(page, task) {
  return page.evaluate(
    (message) =>
      new Promise((resolve, reject) => {
        const worker = new Worker('/tests/browser/engine_worker.mjs', { type: 'module' });
        worker.onmessage = ({ data }) => {
          worker.terminate();
          if (data.error) reject(new Error(data.error));
          else resolve(data.answer);
        };
        worker.onerror = (event) => reject(new Error(event.message ?? 'the worker did not start'));
        worker.postMessage(message);
      }),
    task,
  );
}
