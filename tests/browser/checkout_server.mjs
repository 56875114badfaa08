// Files of this checkout on localhost, as a strict page has them.
import http from 'node:http';
import path from 'node:path';
import { ROOT, sendFile } from '../../tools/bench/bench_server.mjs';

// As strict as a page with wasm can be.
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'";
const ISOLATION = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };

/**
 * Serves an empty page, files of the checkout, and those of `extra` (path on the server: path on disk).
 * @param {{ isolated?: boolean, extra?: Record<string, string>, connect?: string, policy?: string }} options isolated: with shared memory;
 *   connect: another server that the page may ask
 * @returns {Promise<{ address: string, close: () => void }>}
 */
export function serveCheckout({ isolated = true, extra = {}, connect, policy: strict = POLICY }) {
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const policy = connect ? `${strict} ${connect} http://127.0.0.1:1` : strict;
    const headers = { 'Content-Security-Policy': policy, ...(isolated ? ISOLATION : {}) };
    if (pathname === '/') {
      response.writeHead(200, { ...headers, 'Content-Type': 'text/html' }).end('<!doctype html><title>test</title>');
      return;
    }
    sendFile(response, extra[pathname] ?? path.join(ROOT, path.normalize(pathname)), headers);
  });
  const close = () => {
    server.close();
    server.closeAllConnections?.();
  };
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve({ address: `http://127.0.0.1:${server.address().port}/`, close }));
  });
}
