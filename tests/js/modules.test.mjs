// The modules as files: their size, what they import and export, and which relaxed instructions they use.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import { gzipSync } from 'node:zlib';
import { BUILDS, moduleBytes, root } from './builds_under_test.mjs';
import { instructions } from './wasm_code.mjs';

const RAW_LIMIT = 120_000;
const GZIP_LIMIT = 50_000;

const SIMD = 0xfd;
const FIRST_RELAXED = 0x100;
const RELAXED_DOTS = [0x112, 0x113]; // i16x8.relaxed_dot_i8x16_i7x16_s and i32x4.relaxed_dot_i8x16_i7x16_add_s
const RELAXED_MADD = 0x105; // f32x4

const relaxedOf = (bytes) => {
  const used = new Set();
  for (const [prefix, opcode] of instructions(bytes)) if (prefix === SIMD && opcode >= FIRST_RELAXED) used.add(opcode);
  return [...used].sort((a, b) => a - b);
};

/** Names in src/wasm/exports.txt. */
function listedExports(withThreads) {
  const text = fs.readFileSync(new URL('src/wasm/exports.txt', root), 'utf8');
  const wanted = withThreads ? text : text.slice(0, text.search(/^threads/m));
  return wanted.match(/^ml_\w+$/gm).sort();
}

for (const build of BUILDS) {
  const withThreads = build.endsWith('-threads');

  test(`${build}: size`, () => {
    const bytes = moduleBytes(build);
    assert.ok(bytes.length <= RAW_LIMIT, `${bytes.length} bytes`);
    const zipped = gzipSync(bytes, { level: 9 }).length;
    assert.ok(zipped <= GZIP_LIMIT, `${zipped} bytes after gzip`);
  });

  test(`${build}: exports are those of exports.txt`, (t) => {
    if (!WebAssembly.validate(moduleBytes(build))) return t.skip('this Node lacks an instruction of it');
    const exports = WebAssembly.Module.exports(new WebAssembly.Module(moduleBytes(build))).map(({ name }) => name);
    const ours = exports.filter((name) => name.startsWith('ml_')).sort();
    assert.deepEqual(ours, listedExports(withThreads));
    const toolchain = exports.filter((name) => !name.startsWith('ml_'));
    assert.deepEqual(
      toolchain.filter((name) => !/^_/.test(name) && name !== 'emscripten_stack_get_current'),
      [],
    );
  });

  test(`${build}: imports are a memory and receivers of logits and traces`, (t) => {
    if (!WebAssembly.validate(moduleBytes(build))) return t.skip('this Node lacks an instruction of it');
    const imports = WebAssembly.Module.imports(new WebAssembly.Module(moduleBytes(build)));
    assert.deepEqual(imports.map(({ module, name }) => `${module}.${name}`).sort(), [
      'env.memory',
      'krafla.position',
      'krafla.stage',
    ]);
  });

  test(`${build}: the only relaxed instructions are the dot products`, () => {
    assert.deepEqual(relaxedOf(moduleBytes(build)), build.startsWith('relaxed') ? RELAXED_DOTS : []);
  });
}

test('a relaxed multiply-add would be found', () => {
  const body = [0, 0x20, 0, 0x20, 0, 0x20, 0, SIMD, 0x85, 0x02, 0x0b]; // local.get 0 three times, f32x4.relaxed_madd
  const code = [1, body.length, ...body];
  assert.deepEqual(relaxedOf(Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, 10, code.length, ...code])), [RELAXED_MADD]);
});
