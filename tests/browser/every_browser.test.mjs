// The npm package in each browser: what a page does with a model from loadModel to close. Ids are those of native ml_run.
// More is tried in Chromium (package.test.mjs).
import assert from 'node:assert/strict';
import test from 'node:test';
import { nativeIds } from '../js/skins.mjs';
import { BROWSERS } from './browsers_under_test.mjs';
import { serveCheckout } from './checkout_server.mjs';
import { inPage, TASKS } from './page_tasks.mjs';

async function live(page, worker) {
  const { phases, info, whole, pieces, stopped, codes } = await inPage(page, 'lives', { worker });
  assert.deepEqual([phases[0], phases.at(-1)], ['package', 'ready']); // between them what comes too fast is not told
  const expected = nativeIds('llama', [3, 5, 7, 11], 20);
  assert.deepEqual(whole.tokens, expected.slice(0, whole.tokens.length));
  assert.ok(whole.tokens.length > 0);
  assert.equal(stopped.finishReason, 'stopped');
  assert.equal(stopped.text, pieces);
  assert.ok(pieces.length > 0);
  assert.deepEqual(codes, Array(3).fill('KRAFLA_E_CLOSED'));
  return info;
}

for (const [name, { whyNot, launch, relaxed }] of Object.entries(BROWSERS))
  for (const isolated of [true, false])
    test(`${name}, ${isolated ? 'with' : 'without'} isolation`, { skip: whyNot() }, async (t) => {
      const server = await serveCheckout({ isolated, extra: TASKS });
      const { page, close } = await launch();
      try {
        await page.goto(server.address);
        for (const [skin, worker] of Object.entries({ 'in a worker': true, "in the page's own thread": false }))
          await t.test(skin, async () => {
            const info = await live(page, worker);
            const threads = isolated && (await page.evaluate(() => navigator.hardwareConcurrency > 1));
            assert.equal(info.build, `${relaxed ? 'relaxed' : 'simd128'}${threads ? '-threads' : ''}`);
            assert.equal(info.threads > 1, threads);
          });
        await t.test('a worker that is gone rejects', async () => {
          const { gone, missing } = await inPage(page, 'dies', {});
          assert.deepEqual([gone, missing], ['KRAFLA_E_WORKER', 'KRAFLA_E_WORKER']);
        });
      } finally {
        await close();
        server.close();
      }
    });
