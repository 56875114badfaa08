// Beginnings and ends: closing in the middle, workers that die, programs that end, memory that stays flat.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';
import { loadModel } from '../../js/index.js';
import { ROOT, onBothSkins, packageBytes, packagePath, rejectsWith, withModel } from './skins.mjs';

const CYCLES = Number(process.env.CYCLES ?? 300);

onBothSkins('closing while it works rejects what waits, at once', async (skin) => {
  const long = 'a story '.repeat(40);
  for (const ms of [0, 1, 5, 20]) {
    const model = await loadModel(packagePath('llama'), { ...skin, threads: 1 });
    const waiting = [
      model.generate(long),
      model.generate('second'),
      model.tokenize('x'),
      model.score(long),
      model.bench(),
    ];
    const settled = Promise.allSettled(waiting);
    await new Promise((resolve) => setTimeout(resolve, ms));
    await model.close();
    await model.close();
    for (const { status, reason } of await settled)
      assert.ok(status === 'fulfilled' || reason.code === 'KRAFLA_E_CLOSED', reason?.stack);
    await rejectsWith(model.generate('more'), 'KRAFLA_E_CLOSED');
    await rejectsWith(model.tokenize('more'), 'KRAFLA_E_CLOSED');
  }
});

onBothSkins('a for await that is waiting ends, too', async (skin) => {
  const model = await loadModel(packagePath('llama'), { ...skin, threads: 1 });
  await rejectsWith(
    (async () => {
      for await (const piece of model.generate('a story')) if (piece) await model.close();
    })(),
    'KRAFLA_E_CLOSED',
  );
});

onBothSkins('info, score, bench', async (skin) => {
  await withModel('llama', skin, async (model) => {
    assert.equal(model.info.name, 'tiny llama');
    assert.equal(model.info.threads, 1);
    assert.ok(model.info.memoryBytes > model.info.weightBytes);
    const { perplexity, scoredTokens } = await model.score('the end of the story and what came after it');
    assert.ok(perplexity > 1 && scoredTokens > 5);
    const bench = await model.bench({ promptTokens: 16, tokens: 4, repeat: 1 });
    assert.ok(bench.tokensPerSecond > 0 && bench.promptTokensPerSecond > 0);
    await rejectsWith(model.score([5]), 'ML_E_ARG');
    await rejectsWith(model.score(5), 'ML_E_ARG');
  });
});

test('perplexity is that of ml_run', async () => {
  const ids = Array.from({ length: 700 }, (_, i) => (i * i) % 700);
  const file = path.join(os.tmpdir(), `ids-${process.pid}`);
  fs.writeFileSync(file, ids.join(' '));
  const command = ['-m', packagePath('llama'), '--ids', file, '--perplexity', '--json', '--quiet'];
  const { stdout, stderr } = spawnSync(`${ROOT}build/native/ml_run`, command, { encoding: 'utf8' });
  fs.rmSync(file);
  assert.ok(stdout, stderr);
  await withModel('llama', {}, async (model) => {
    const { perplexity, scoredTokens } = await model.score(ids);
    const expected = JSON.parse(stdout);
    assert.equal(scoredTokens, expected.scored_ids);
    assert.ok(Math.abs(perplexity / expected.perplexity - 1) < 1e-5, `${perplexity}, ml_run: ${expected.perplexity}`);
  });
});

test('a worker that dies fails what waits for it', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'worker-'));
  const workers = {
    exits: 'setTimeout(() => process.exit(3), 50);',
    throws: 'setTimeout(() => { throw new Error("out of order"); }, 50);',
    'does not parse': 'syntax error',
  };
  for (const [name, ending] of Object.entries(workers)) {
    const file = path.join(folder, `${name}.mjs`);
    fs.writeFileSync(file, `import ${JSON.stringify(pathToFileURL(`${ROOT}js/worker.js`))};\n${ending}\n`);
    const use = async () => {
      const model = await loadModel(packagePath('llama'), { workerUrl: pathToFileURL(file), threads: 1 });
      for (;;) await model.generate('a story');
    };
    await rejectsWith(use(), 'KRAFLA_E_WORKER', /died|cannot/);
  }
  fs.rmSync(folder, { recursive: true });
});

test('a listener on a signal is taken back', async () => {
  const { signal } = new AbortController();
  const listeners = new Set();
  const counted = {
    get aborted() {
      return signal.aborted;
    },
    throwIfAborted: () => signal.throwIfAborted(),
    addEventListener(...parameters) {
      listeners.add(parameters[1]);
      signal.addEventListener(...parameters);
    },
    removeEventListener(...parameters) {
      listeners.delete(parameters[1]);
      signal.removeEventListener(...parameters);
    },
  };
  for (const worker of [false, true]) {
    const model = await loadModel(packagePath('llama'), { worker, threads: 1, signal: counted });
    await model.generate('a', { maxTokens: 3, signal: counted });
    for await (const piece of model.generate('a', { signal: counted })) if (piece) break;
    await model.score('the end of it', { signal: counted });
    await model.close();
    assert.equal(listeners.size, 0);
  }
});

const program = (text) =>
  spawnSync(process.execPath, ['--input-type=module', '-e', `import { loadModel } from './js/index.js';\n${text}`], {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: 60000,
  });

test('a program ends when it is done, and not before', () => {
  const load = "const model = await loadModel('build/packages/llama', { threads: 2 });";
  const endings = {
    closed: `${load} console.log((await model.generate('a', { maxTokens: 3 })).tokens.length); await model.close();`,
    'left open': `${load} console.log((await model.generate('a', { maxTokens: 3 })).tokens.length);`,
    'not awaited': `${load} model.generate('a', { maxTokens: 3 }).then(({ tokens }) => console.log(tokens.length));`,
    'in process': `const model = await loadModel('build/packages/llama', { worker: false, threads: 2 });
      console.log((await model.generate('a', { maxTokens: 3 })).tokens.length);`,
  };
  for (const [name, text] of Object.entries(endings)) {
    const { status, stdout, stderr } = program(text);
    assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: '3\n', stderr: '' }, name);
  }
});

test('importing it does nothing, where there is no window and no worker', () => {
  const { status, stdout } = program(
    'console.log(typeof loadModel, process.getActiveResourcesInfo().includes("MessagePort"));',
  );
  assert.deepEqual({ status, stdout }, { status: 0, stdout: 'function false\n' });
});

test('load, generate, close, again and again: memory stays flat', async () => {
  const bytes = packageBytes('llama', 'model.mlb');
  const tokenizer = packageBytes('llama', 'tokenizer.mlt');
  const cycle = async () => {
    const model = await loadModel(bytes, { tokenizer, worker: false, threads: 1, contextSize: 64 });
    await model.generate('a story', { maxTokens: 2 });
    await model.close();
  };
  const settledMemory = async () => {
    for (let i = 0; i < 3; i++) {
      globalThis.gc?.();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return process.memoryUsage().rss;
  };
  for (let i = 0; i < CYCLES / 3; i++) await cycle();
  const before = await settledMemory();
  for (let i = 0; i < CYCLES; i++) await cycle();
  const growth = (await settledMemory()) - before;
  assert.ok(growth < 60 << 20, `${(growth / 2 ** 20).toFixed(1)} MB more after ${CYCLES} cycles`);
});

test('workers come and go: none is left', async () => {
  for (let i = 0; i < 15; i++)
    await withModel('llama', { threads: 2 }, (model) => model.generate('a', { maxTokens: 2 }));
  const ports = () => process.getActiveResourcesInfo().filter((name) => /Worker|MessagePort/.test(name));
  for (let i = 0; i < 200 && ports().length; i++) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(ports(), []);
});
