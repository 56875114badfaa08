// Serves the checkout and the models on localhost, as a page with shared memory needs it.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const TYPES = {
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.wasm': 'application/wasm',
  '.html': 'text/html',
};
const HEADERS = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'cross-origin',
  'Cache-Control': 'no-store',
};
const EMPTY_PAGE = '<!doctype html><meta charset="utf-8"><title>bench</title>';

/** Answers with a file, or with 404. */
export function sendFile(response, file, headers) {
  fs.stat(file, (error, stat) => {
    if (error || !stat.isFile()) return response.writeHead(404, headers).end();
    const type = TYPES[path.extname(file)] ?? 'application/octet-stream';
    response.writeHead(200, { ...headers, 'Content-Type': type, 'Content-Length': stat.size });
    fs.createReadStream(file, { highWaterMark: 1 << 20 }).pipe(response);
  });
}

/** @returns {Promise<{ base: string, close: () => void }>} */
export function serve() {
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    if (pathname === '/') return response.writeHead(200, { ...HEADERS, 'Content-Type': 'text/html' }).end(EMPTY_PAGE);
    sendFile(response, path.join(ROOT, path.normalize(decodeURIComponent(pathname))), HEADERS);
    return undefined;
  });
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () =>
      resolve({ base: `http://127.0.0.1:${server.address().port}`, close: () => server.close() }),
    ),
  );
}
