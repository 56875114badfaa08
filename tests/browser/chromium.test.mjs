// The modules in Chromium, in a worker of a page with a strict policy: their traces are those of the native program.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { runInWorker, withPage } from './chromium.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const MODELS = ['llama', 'qwen3_5-q4', 'gemma3-layers'];
const IDS = Array.from({ length: 19 }, (_, i) => (i * i) % 17);

function nativeTrace(model) {
  const file = `tests/golden/${model}.mlb`;
  const command = ['--trace', '--isa', 'scalar', '-m', file, '--ids', IDS.join(',')];
  return execFileSync('build/native/ml_run', command, { cwd: ROOT, encoding: 'utf8' }).trimEnd().split('\n');
}

const traceIn = (page, build, model, settings = {}) =>
  runInWorker(page, { action: 'trace', build, model: `/tests/golden/${model}.mlb`, ids: IDS, settings });

test('without isolation: builds for one thread', async () => {
  await withPage({ isolated: false }, async (page) => {
    const builds = await runInWorker(page, { action: 'builds', settings: { threads: 2 } });
    assert.deepEqual(builds, ['relaxed', 'simd128']);
    for (const build of builds)
      for (const model of MODELS) {
        const { lines } = await traceIn(page, build, model);
        assert.deepEqual(lines, nativeTrace(model), `${build} ${model}`);
      }
  });
});

test('with isolation: builds with threads', async () => {
  await withPage({ isolated: true }, async (page) => {
    const builds = await runInWorker(page, { action: 'builds', settings: { threads: 2 } });
    assert.deepEqual(builds, ['relaxed-threads', 'simd128-threads']);
    for (const build of builds)
      for (const model of MODELS)
        for (const threads of [1, 2, 3]) {
          const answer = await traceIn(page, build, model, { threads, batchSize: 8 });
          assert.equal(answer.threads, threads);
          assert.deepEqual(answer.lines.sort(), nativeTrace(model).sort(), `${build} ${model} ${threads}`);
        }
  });
});
