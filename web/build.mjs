// build.mjs - bundles the page into a folder that any static host can serve:
//
//     node web/build.mjs [--out build/web] [--wasm build/wasm] [--package js]
//
//     index.html chat.css icon.svg    as they are
//     main.js                         the page with its libraries and the package's part that runs in a page
//     worker.js, thread.js            the package's other parts, beside it, where it looks for them
//     chunk-*.js, service-*.js        what several of them share, and what a page needs only without a worker
//     wasm/*.wasm                     the modules, of which a page fetches one
//
// Says how much of it a visit costs, compressed.

import { build } from 'esbuild';
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const WEB = fileURLToPath(new URL('./', import.meta.url));
const ROOT = path.dirname(path.resolve(WEB));
const AS_THEY_ARE = ['index.html', 'chat.css', 'icon.svg'];

const { values: options } = parseArgs({
  options: {
    out: { type: 'string', default: path.join(ROOT, 'build/web') },
    wasm: { type: 'string', default: path.join(ROOT, 'build/wasm') },
    package: { type: 'string', default: path.join(ROOT, 'js') },
  },
});

const gzipped = (file) => gzipSync(fs.readFileSync(file), { level: 9 }).length;
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;

async function main() {
  const modules = fs.readdirSync(options.wasm).filter((name) => name.endsWith('.wasm'));
  if (modules.length === 0) throw new Error(`${options.wasm} holds no modules: \`make wasm\` makes them`);
  const part = (name) => path.join(options.package, `${name}.js`);
  fs.rmSync(options.out, { recursive: true, force: true });
  await build({
    entryPoints: { main: path.join(WEB, 'main.js'), worker: part('worker'), thread: part('thread') },
    alias: { 'krafla-web': path.resolve(part('index')) },
    outdir: options.out,
    bundle: true,
    format: 'esm',
    minify: true,
    splitting: true,
    sourcemap: true,
    target: ['chrome100', 'firefox100', 'safari16.4'],
    logLevel: 'warning',
  });
  for (const name of AS_THEY_ARE) fs.copyFileSync(path.join(WEB, name), path.join(options.out, name));
  fs.mkdirSync(path.join(options.out, 'wasm'));
  for (const name of modules) fs.copyFileSync(path.join(options.wasm, name), path.join(options.out, 'wasm', name));
  tell(modules);
}

function tell(modules) {
  const chunks = fs.readdirSync(options.out).filter((name) => /^chunk-.*\.js$/.test(name));
  const inOut = (name) => path.join(options.out, name);
  const page = [...AS_THEY_ARE, 'main.js', 'worker.js', 'thread.js', ...chunks]
    .map(inOut)
    .map(gzipped)
    .reduce((a, b) => a + b);
  const largest = Math.max(...modules.map((name) => gzipped(inOut(`wasm/${name}`))));
  console.log(
    `${path.relative(process.cwd(), options.out)}: a visit takes ${kilobytes(page + largest)} gzipped, ` +
      `${kilobytes(largest)} of them the wasm module`,
  );
}

await main();
