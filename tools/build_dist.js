// Makes the npm package in build/package: our modules bundled with the two libraries that they use, the wasm builds, the
// types. A page imports dist/index.js as it is, without a bundler.
//
//     node tools/build_dist.js      (make dist, which also packs it)
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../', import.meta.url));
const out = `${root}build/package`;
const own = JSON.parse(fs.readFileSync(`${root}package.json`, 'utf8'));

// In the package the wasm modules lie beside the code.
const assetsBeside = {
  name: 'assets beside the code',
  setup({ onLoad }) {
    onLoad({ filter: /[/\\]js[/\\]assets\.js$/ }, ({ path }) => ({
      contents: fs.readFileSync(path, 'utf8').replaceAll('../build/wasm/', './'),
    }));
  },
};

fs.rmSync(out, { recursive: true, force: true });
await build({
  absWorkingDir: root,
  entryPoints: ['js/index.js', 'js/worker.js', 'js/thread.js', 'js/cli.js'],
  outdir: `${out}/dist`,
  bundle: true,
  splitting: true,
  format: 'esm',
  minify: true,
  target: 'es2022',
  chunkNames: 'part-[hash]',
  legalComments: 'none',
  plugins: [assetsBeside],
});
for (const name of fs.readdirSync(`${root}build/wasm`))
  fs.copyFileSync(`${root}build/wasm/${name}`, `${out}/dist/${name}`);
fs.copyFileSync(`${root}js/index.d.ts`, `${out}/dist/index.d.ts`);
for (const name of ['LICENSE', 'README.md']) fs.copyFileSync(`${root}${name}`, `${out}/${name}`);

const { name, version, description, license, engines } = own;
const manifest = {
  name,
  version,
  description,
  license,
  type: 'module',
  engines,
  sideEffects: false,
  exports: {
    '.': { types: './dist/index.d.ts', default: './dist/index.js' },
    './worker.js': './dist/worker.js',
    './*.wasm': './dist/*.wasm',
    './package.json': './package.json',
  },
  bin: { 'krafla-web': 'dist/cli.js' },
  files: ['dist'],
  keywords: ['llm', 'language model', 'wasm', 'browser', 'cpu', 'offline', 'inference'],
};
fs.writeFileSync(`${out}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`);
