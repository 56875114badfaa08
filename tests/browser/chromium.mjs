// A page of this checkout in Debian's Chromium: a server on localhost and a browser, for tests.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { CHROMIUM_ARGUMENTS } from '../../tools/bench/browsers.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const TYPES = {
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.wasm': 'application/wasm',
  '.html': 'text/html',
};

// As strict as a page with wasm can be.
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'";
const ISOLATION = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };

/** Serves files of the checkout, and those of `extra` (path on the server: path on disk). */
function serve({ isolated, extra, connect, policy: strict = POLICY }) {
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const policy = connect ? `${strict} ${connect} http://127.0.0.1:1` : strict;
    const headers = { 'Content-Security-Policy': policy, ...(isolated ? ISOLATION : {}) };
    if (pathname === '/') {
      response.writeHead(200, { ...headers, 'Content-Type': 'text/html' }).end('<!doctype html><title>test</title>');
      return;
    }
    const file = extra[pathname] ?? path.join(ROOT, path.normalize(pathname));
    fs.stat(file, (error, stat) => {
      if (error || !stat.isFile()) return response.writeHead(404, headers).end();
      const type = TYPES[path.extname(file)] ?? 'application/octet-stream';
      response.writeHead(200, { ...headers, 'Content-Type': type, 'Content-Length': stat.size });
      fs.createReadStream(file).pipe(response);
    });
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

export const launchChromium = () => chromium.launch({ executablePath: '/usr/bin/chromium', args: CHROMIUM_ARGUMENTS });

/**
 * Opens an empty page, calls `use(page)`, and closes everything.
 * @param {{ isolated?: boolean, extra?: Record<string, string>, connect?: string, policy?: string }} options isolated: with shared memory;
 *   connect: another server that the page may ask
 */
export async function withPage(options, use) {
  const server = await serve({ isolated: true, extra: {}, ...options });
  let browser;
  try {
    browser = await launchChromium();
    const page = await browser.newPage();
    page.on('console', (message) => console.log(`page: ${message.text()}`));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
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
