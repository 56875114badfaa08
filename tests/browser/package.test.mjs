// The package as a page has it: dist/ under a strict policy, in a worker and in the page's own thread, with and without
// shared memory. Texts and ids are those of native ml_run.
import assert from 'node:assert/strict';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { nativeIds } from '../js/skins.mjs';
import { startFaultServer } from '../js/fault_server.mjs';
import { withPage } from './chromium.mjs';
import { inPage, TASKS } from './page_tasks.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const IDS = [3, 5, 7, 11];

/** What `measure` resolves to, in milliseconds, is below `limit`: at one of five times, since machines have other work. */
async function shortly(limit, measure) {
  const times = [];
  do times.push(await measure());
  while (times.at(-1) >= limit && times.length < 5);
  assert.ok(times.at(-1) < limit, `${times.join(', ')} ms`);
}

for (const isolated of [false, true])
  test(`greedy ids are the native ones, ${isolated ? 'with' : 'without'} isolation`, async () => {
    await withPage({ isolated, extra: TASKS }, async (page) => {
      for (const worker of [true, false])
        for (const name of ['llama', 'hybrid', 'window']) {
          const options = { worker, threads: isolated ? 2 : undefined };
          const { tokens, info } = await inPage(page, 'generate', { name, ids: IDS, options });
          assert.deepEqual(tokens, nativeIds(name, IDS, 20).slice(0, tokens.length));
          assert.ok(tokens.length > 0);
          assert.equal(info.build, isolated ? 'relaxed-threads' : 'relaxed');
          assert.equal(info.threads, isolated ? 2 : 1);
        }
      const forced = await inPage(page, 'generate', { name: 'llama', ids: IDS, options: { build: 'simd128' } });
      assert.equal(forced.info.build, 'simd128');
      assert.deepEqual(forced.tokens, nativeIds('llama', IDS, 20).slice(0, forced.tokens.length));
    });
  });

test('pieces, chats, stops and aborts', async () => {
  await withPage({ isolated: false, extra: TASKS }, async (page) => {
    for (const worker of [true, false]) {
      const streamed = await inPage(page, 'streams', { worker });
      assert.equal(streamed.pieces.join(''), streamed.text);
      assert.deepEqual(streamed.roles, ['system', 'user', 'assistant']);
      assert.equal(streamed.stopped, 'stopped');
      await shortly(250, async () => {
        const aborted = await inPage(page, 'aborts', { worker });
        assert.deepEqual(aborted.name, 'AbortError');
        assert.ok(aborted.after > 0);
        return aborted.ms;
      });
    }
  });
});

test('a worker that is gone, and one that cannot be loaded, reject', async () => {
  await withPage({ isolated: false, extra: TASKS }, async (page) => {
    const { gone, missing } = await inPage(page, 'dies', {});
    assert.deepEqual([gone, missing], ['KRAFLA_E_WORKER', 'KRAFLA_E_WORKER']);
  });
});

test('a policy that forbids wasm is named, whoever needs wasm first', async () => {
  const policy = "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src 'self'";
  await withPage({ isolated: false, extra: TASKS, policy }, async (page) => {
    for (const worker of [true, false]) {
      const loading = inPage(page, 'generate', { name: 'llama', ids: IDS, options: { worker } });
      await assert.rejects(loading, /cannot be compiled: the page's Content-Security-Policy needs .*wasm-unsafe-eval/);
    }
  });
});

test('files that are dropped, bytes, streams, and a server that errs', async () => {
  const server = await startFaultServer(`${ROOT}build/packages`);
  try {
    await withPage({ isolated: false, extra: TASKS, connect: server.url }, async (page) => {
      const outcomes = await inPage(page, 'sources', { faults: server.url });
      const { dropped, bytes, stream, cut, ...failures } = outcomes;
      assert.deepEqual([dropped, bytes, stream, cut], Array(4).fill('8 tokens'));
      assert.deepEqual(failures, {
        html: 'KRAFLA_E_CONTENT',
        404: 'KRAFLA_E_HTTP',
        500: 'KRAFLA_E_HTTP',
        short: 'KRAFLA_E_LENGTH',
        stall: 'KRAFLA_E_STALLED',
        flipped: 'KRAFLA_E_INTEGRITY',
        nowhere: 'KRAFLA_E_NETWORK',
      });
    });
  } finally {
    server.close();
  }
});

test('files that are kept: fetched once, checked each time, there without a server', async () => {
  const server = await startFaultServer(`${ROOT}build/packages`);
  const fetched = (path) => server.visits.get(path) ?? 0;
  try {
    await withPage({ isolated: false, extra: TASKS, connect: server.url }, async (page) => {
      const run = (step) => inPage(page, 'caches', { server: server.url, step });
      assert.deepEqual(await run('twice'), ['8 tokens', '8 tokens']);
      assert.equal(fetched('/plain/llama/model.mlb'), 1);
      assert.equal(fetched('/plain/llama/tokenizer.mlt'), 1);
      assert.equal(fetched('/plain/llama/model.json'), 2);
      assert.deepEqual(await run('not asked for'), ['8 tokens']);
      assert.equal(fetched('/plain/llama/model.mlb'), 2);
      assert.deepEqual(await run('damaged'), ['KRAFLA_E_INTEGRITY', '8 tokens']);
      assert.equal(fetched('/plain/llama/model.mlb'), 3);
      assert.deepEqual(await run('bad downloads'), [
        'KRAFLA_E_INTEGRITY',
        'KRAFLA_E_STALLED',
        'KRAFLA_E_LENGTH',
        'none kept',
      ]);
      assert.deepEqual(await run('no room'), ['8 tokens', 'none kept']);
      assert.deepEqual(await run('twice'), ['8 tokens', '8 tokens']);
      server.close();
      assert.deepEqual(await run('twice'), ['8 tokens', '8 tokens']);
      assert.deepEqual(await run('not asked for'), ['KRAFLA_E_NETWORK']);
    });
  } finally {
    server.close();
  }
});

test('the page stays free while a worker generates', async () => {
  await withPage({ isolated: true, extra: TASKS }, async (page) => {
    await shortly(50, async () => {
      const { longest, tokens } = await inPage(page, 'responsive', {});
      assert.ok(tokens > 100);
      return longest;
    });
  });
});

test('examples/page.html goes on with its text', async () => {
  await withPage({ isolated: false, policy: "default-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'" }, async (page) => {
    await page.goto(new URL('/examples/page.html?model=/build/packages/llama/', page.url()).href);
    await page.click('button');
    const isStory = () => /^(?!\d+ of ).{21}/s.test(document.querySelector('pre').textContent); // no longer the progress
    await page.waitForFunction(isStory);
    assert.doesNotMatch(await page.textContent('pre'), /of \d+ bytes/);
  });
});
