// A server on localhost that does to downloads what networks do. The path says what: /cut/llama/model.mlb ends each
// answer early, /plain/llama/model.mlb does nothing of the sort.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

const PIECE = 16384;

/** Answers from `from` on, `limit` bytes at most, then as `end` says: 'end', 'break' the connection, or 'hang'. */
function answer(request, response, bytes, { ranges = true, limit = Infinity, end = 'end', headers = {}, etag } = {}) {
  const range = ranges && /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
  const [from, to] = range ? [Number(range[1]), range[2] ? Number(range[2]) + 1 : bytes.length] : [0, bytes.length];
  const part = bytes.subarray(from, Math.min(to, bytes.length));
  const all = { 'Content-Length': part.length, ...headers };
  if (etag) all.ETag = etag;
  if (range) all['Content-Range'] = `bytes ${from}-${from + part.length - 1}/${bytes.length}`;
  for (const [name, value] of Object.entries(all)) if (value === undefined) delete all[name];
  response.writeHead(range ? 206 : 200, all);
  if (part.length <= limit) return void response.end(part);
  for (let at = 0; at < limit; at += PIECE) response.write(part.subarray(at, Math.min(at + PIECE, limit)));
  if (end === 'break') setTimeout(() => response.destroy(), 20);
}

// What can happen to a model's file. `visit` counts the requests for this path.
const FAULTS = {
  plain: (request, response, bytes) => answer(request, response, bytes),
  cut: (request, response, bytes) =>
    answer(request, response, bytes, { limit: bytes.length / 4, end: 'break', etag: '"1"' }),
  norange: (request, response, bytes, visit) =>
    answer(request, response, bytes, { ranges: false, ...(visit === 1 && { limit: bytes.length / 2, end: 'break' }) }),
  changed: (request, response, bytes, visit) =>
    answer(request, response, bytes, {
      ...(visit === 1 && { limit: bytes.length / 2, end: 'break' }),
      etag: `"${visit}"`,
    }),
  broken: (request, response, bytes, visit) =>
    visit === 1
      ? answer(request, response, bytes, { limit: bytes.length / 2, end: 'break' })
      : response.writeHead(500).end(),
  dead: (request, response, bytes, visit) =>
    visit === 1 ? answer(request, response, bytes, { limit: 1000, end: 'break' }) : response.destroy(),
  stall: (request, response, bytes, visit) =>
    answer(request, response, bytes, { limit: visit === 1 ? 70000 : 0, end: 'hang' }),
  stallonce: (request, response, bytes, visit) =>
    answer(request, response, bytes, visit === 1 ? { limit: 70000, end: 'hang' } : {}),
  silent: () => {},
  short: (request, response, bytes) => answer(request, response, bytes.subarray(0, -64)),
  long: (request, response, bytes) => answer(request, response, Buffer.concat([bytes, Buffer.alloc(64)])),
  nolength: (request, response, bytes) =>
    answer(request, response, bytes, { headers: { 'Content-Length': undefined } }),
  shortnolength: (request, response, bytes) =>
    answer(request, response, bytes.subarray(0, -64), { headers: { 'Content-Length': undefined } }),
  gzip: (request, response, bytes) =>
    answer(request, response, gzipSync(bytes), { ranges: false, headers: { 'Content-Encoding': 'gzip' } }),
  flipped(request, response, bytes) {
    const other = Buffer.from(bytes);
    other[other.length - 5] ^= 1;
    answer(request, response, other);
  },
  html: (request, response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html>Sign in'),
  404: (request, response) => response.writeHead(404).end(),
  500: (request, response) => response.writeHead(500).end(),
};

/**
 * @param {string} folder of packages
 * @returns {Promise<{ url: string, visits: Map<string, number>, close: () => void }>}
 */
export async function startFaultServer(folder) {
  const visits = new Map();
  const server = http.createServer((request, response) => {
    response.setHeader('Access-Control-Allow-Origin', '*');
    const [, fault, ...rest] = new URL(request.url, 'http://localhost').pathname.split('/');
    const file = path.join(folder, ...rest);
    if (!FAULTS[fault] || !fs.existsSync(file)) return void response.writeHead(404).end();
    visits.set(request.url, (visits.get(request.url) ?? 0) + 1);
    const bytes = fs.readFileSync(file);
    // Faults befall the weights; what comes before them arrives.
    const happen = file.endsWith('.mlb') || /^(html|404|500|silent)$/.test(fault) ? FAULTS[fault] : FAULTS.plain;
    happen(request, response, bytes, visits.get(request.url));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, visits, close };
}
