// The package as npm has it: what is in it, how large it is, installed elsewhere, and its types.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { gzipSync } from 'node:zlib';
import { ROOT, nativeIds, packagePath } from './skins.mjs';

const PAGE_LIMIT = 100_000; // bytes after gzip: what a page loads before the model
const DIST = `${ROOT}build/package/dist`;
const names = fs.readdirSync(DIST);
const read = (name) => fs.readFileSync(`${DIST}/${name}`);
const zipped = (name) => gzipSync(read(name), { level: 9 }).length;

/** A module and all that it imports, in the package. */
function reach(name, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  for (const [, other] of String(read(name)).matchAll(/["']\.\/([\w-]+\.js)["']/g)) reach(other, found);
  return found;
}

test('all JavaScript and the largest module are a small download', () => {
  const code = [...reach('index.js')].reduce((sum, name) => sum + zipped(name), 0);
  const module = Math.max(...names.filter((name) => name.endsWith('.wasm')).map(zipped));
  assert.ok(reach('index.js').has('worker.js') && reach('index.js').has('thread.js'));
  assert.ok(code + module <= PAGE_LIMIT, `${code} bytes of JavaScript and ${module} of wasm`);
});

test('nothing in it needs a bundler, Node, eval, or somebody else', () => {
  for (const name of names.filter((file) => file.endsWith('.js'))) {
    const text = String(read(name));
    assert.doesNotMatch(
      text,
      /\bfrom\s*["'](?!\.)|\bimport\s*["'](?!\.)|\bimport\(\s*["'](?!\.)/,
      `${name} imports a bare name`,
    );
    assert.doesNotMatch(text, /\beval\(|new Function\b|createObjectURL|https?:\/\/(?!127)/, name);
  }
});

test('addresses of files are written so that bundlers see them', () => {
  const all = names
    .filter((file) => file.endsWith('.js'))
    .map((name) => String(read(name)))
    .join('\n');
  for (const name of ['worker.js', 'thread.js', ...names.filter((file) => file.endsWith('.wasm'))])
    assert.match(all, new RegExp(`new URL\\(["']\\./${name.replace('.', '\\.')}["'],\\s*import\\.meta\\.url\\)`), name);
});

test('packed and installed elsewhere, it runs', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'install-'));
  try {
    const options = { cwd: folder, encoding: 'utf8' };
    const [{ filename, files }] = JSON.parse(execFileSync('npm', ['pack', '--json', `${ROOT}build/package`], options));
    const unwanted = files
      .map(({ path: name }) => name)
      .filter((name) => !/^(dist\/[\w-]+\.(js|d\.ts|wasm)|package\.json|README\.md|LICENSE)$/.test(name));
    assert.deepEqual(unwanted, []);
    fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true, "type": "module" }');
    execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', `./${filename}`], options);
    assert.equal(JSON.parse(fs.readFileSync(`${folder}/node_modules/krafla-web/package.json`)).scripts, undefined);
    const program = `import { loadModel } from 'krafla-web';
      const model = await loadModel(${JSON.stringify(packagePath('llama'))}, { threads: 2 });
      const { tokens } = await model.generate([3, 5, 7, 11], { maxTokens: 8 });
      console.log(JSON.stringify({ tokens, threads: model.info.threads }));
      await model.close();`;
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], options);
    assert.equal(stderr, '');
    assert.deepEqual(JSON.parse(stdout), {
      tokens: nativeIds('llama', [3, 5, 7, 11], 8),
      threads: Math.min(2, os.availableParallelism()),
    });
    const help = execFileSync(`${folder}/node_modules/.bin/krafla-web`, ['--help'], options);
    assert.match(help, /usage: krafla-web/);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});

test('types: right uses pass, wrong ones do not', () => {
  const command = [`${ROOT}node_modules/typescript/bin/tsc`, '-p', `${ROOT}tests/js/types/tsconfig.json`];
  const { status, stdout } = spawnSync(process.execPath, command, { encoding: 'utf8' });
  assert.equal(status, 0, stdout);
});
