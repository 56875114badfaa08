// Where a machine's relaxed SIMD is not what the kernels rely on, their module is refused: never are there other bits.
// Both of V8's compilers are tried, in this Node and in the one on PATH, which may be of the kind that is wrong.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import test from 'node:test';
import { root } from './builds_under_test.mjs';

const REFUSED = 3; // wasm_run's exit code
const IDS = Array.from({ length: 19 }, (_, i) => (i * i) % 17).join();

const run = (node, ...options) => {
  const command = [...options, '--trace', '-m', 'tests/golden/qwen3_5-q4.mlb', '--ids', IDS];
  const { status, stdout, stderr } = spawnSync(node, command, { cwd: root, encoding: 'utf8' });
  return { status, lines: stdout.trim().split('\n').sort(), stderr };
};

/** What makes a Node take relaxed instructions, or undefined. */
function flagsOf(node) {
  const knows = (...flags) => spawnSync(node, [...flags, '-e', '0']).status === 0;
  if (knows('--experimental-wasm-relaxed-simd')) return ['--experimental-wasm-relaxed-simd'];
  return knows() ? [] : undefined; // no longer an experiment, or not yet one
}

for (const node of new Set([process.execPath, 'node']))
  for (const compiler of [[], ['--liftoff-only'], ['--no-liftoff']])
    test(`${node === 'node' ? 'the Node on PATH' : 'this Node'} ${compiler}: right or refused`, (t) => {
      const flags = flagsOf(node);
      if (!flags) return t.skip('no such program');
      const expected = run(process.execPath, 'tests/js/wasm_run.mjs', 'build/wasm/simd128.wasm');
      assert.equal(expected.status, 0, expected.stderr);
      for (const batch of ['1', '9']) {
        const relaxed = ['tests/js/wasm_run.mjs', 'build/wasm/relaxed.wasm', '--batch', batch];
        const { status, lines, stderr } = run(node, ...flags, ...compiler, ...relaxed);
        if (status === REFUSED) t.diagnostic(`refused: ${stderr.trim()}`);
        else assert.deepEqual({ status, lines }, { status: 0, lines: expected.lines }, stderr);
      }
    });
