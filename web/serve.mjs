// serve.mjs - serves the built page and models of this machine, with the headers that they want:
//
//     node web/serve.mjs --model smollm2=build/models/smollm2-135m-q4 --model stories=examples/models/stories
//
// Prints the address. --port and --host choose it (default: 8080 or, if that is taken, the next free one, on this machine
// only); --open ID prints the address that loads that model at once; --not-isolated leaves out the headers that give a page
// shared memory, as most static hosts do. Ends on Ctrl-C.
//
// Files, ranges, types and revalidation are sirv's; which headers a page with threads and a strict policy needs is here.

import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import sirv from 'sirv';

const PAGE = fileURLToPath(new URL('../build/web', import.meta.url));
const FIRST_PORT = 8080;
const LAST_PORT = 8099; // after that any that is free

// Nothing from elsewhere, no script but the page's own files, and wasm.
const POLICY =
  "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
const ISOLATION = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};
const TYPES = { '.mlb': 'application/octet-stream', '.mlt': 'application/octet-stream' };

function readOptions() {
  const { values } = parseArgs({
    options: {
      page: { type: 'string', default: PAGE },
      model: { type: 'string', multiple: true, default: [] },
      open: { type: 'string' },
      host: { type: 'string', default: 'localhost' },
      port: { type: 'string' },
      'not-isolated': { type: 'boolean', default: false },
    },
  });
  const models = values.model.map((pair) => {
    const [, id, folder] = /^([\w.-]+)=(.+)$/.exec(pair) ?? fail(`--model ${pair}: must be ID=FOLDER`);
    return { id, folder: path.resolve(folder), ...readManifest(folder) };
  });
  if (values.open && !models.some(({ id }) => id === values.open))
    fail(`--open ${values.open}: there is no such model`);
  if (!fs.existsSync(path.join(values.page, 'index.html')))
    fail(`${values.page} holds no page: \`node web/build.mjs\` makes it`);
  return { ...values, port: readPort(values.port), isolated: !values['not-isolated'], models };
}

function readPort(text) {
  if (text === undefined || text === '') return undefined;
  const port = Number(text);
  return Number.isInteger(port) && port >= 0 && port < 65536
    ? port
    : fail(`--port ${text}: must be a number from 0 to 65535`);
}

/** What the page's list of models says of one. */
function readManifest(folder) {
  const file = path.join(folder, 'model.json');
  try {
    const { name, license, chatTemplate, files } = JSON.parse(fs.readFileSync(file, 'utf8'));
    const bytes = Object.values(files).reduce((sum, { size = 0 }) => sum + size, 0);
    return { name, license, bytes, about: chatTemplate ? 'answers questions' : 'goes on with a text' };
  } catch (error) {
    return fail(`${file}: ${error.message}`);
  }
}

function fail(words) {
  console.error(`serve.mjs: ${words}`);
  process.exit(1);
}

/** Answers every request: the list of models, files of a model, files of the page, or "not found". */
function makeHandler({ page, models, isolated }) {
  const headers = {
    'Content-Security-Policy': POLICY,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    ...(isolated ? ISOLATION : {}),
  };
  const setHeaders = (response, pathname) => {
    const type = TYPES[path.extname(pathname)];
    if (type) response.setHeader('Content-Type', type);
  };
  const files = (folder) => sirv(folder, { dev: true, etag: true, setHeaders });
  const ofPage = files(page);
  const ofModels = new Map(models.map(({ id, folder }) => [id, files(folder)]));
  const list = JSON.stringify({ models: models.map(({ folder: _, ...facts }) => ({ ...facts, url: `${facts.id}/` })) });

  return (request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { Allow: 'GET, HEAD' }).end();
      return;
    }
    const { pathname } = new URL(request.url, 'http://localhost');
    const [, id] = /^\/models\/([\w.-]+)\//.exec(pathname) ?? [];
    if (pathname === '/models/index.json') {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-cache' }).end(list);
    } else if (id && ofModels.has(id)) {
      request.url = request.url.slice(`/models/${id}`.length);
      ofModels.get(id)(request, response);
    } else {
      ofPage(request, response);
    }
  };
}

/** On the port that was asked for, or on the first free one. */
async function listen(server, { host, port }) {
  const ports =
    port === undefined ? [...Array(LAST_PORT - FIRST_PORT + 1).keys()].map((i) => FIRST_PORT + i).concat(0) : [port];
  for (const candidate of ports) {
    try {
      await new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(candidate, host, resolve);
      });
      return server.address().port;
    } catch (error) {
      if (port !== undefined || error.code !== 'EADDRINUSE') fail(`${host}:${candidate}: ${error.message}`);
    } finally {
      server.removeAllListeners('error');
    }
  }
  return fail('no port is free');
}

const options = readOptions();
const server = http.createServer(makeHandler(options));
const port = await listen(server, options);
const host = options.host.includes(':') ? `[${options.host}]` : options.host;
console.log(`http://${host}:${port}/${options.open ? `?model=${options.open}` : ''}`);

for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => {
    server.close(() => process.exit(0));
    server.closeAllConnections();
  });
