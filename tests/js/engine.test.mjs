// The engine around each module: what it computes, what it refuses, and that threads change nothing.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import test from 'node:test';
import { Engine, plan } from '../../js/heap.js';
import { compiled, root, runnableBuilds } from './builds_under_test.mjs';

const golden = (name) =>
  new Uint8Array(fs.readFileSync(new URL(`tests/golden/${name.includes('.') ? name : `${name}.mlb`}`, root)));
const IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3];
const REFERENCE = 'simd128';

async function start(build, file, options = {}) {
  const module = await compiled(build);
  const { memoryBytes } = await plan(module, file.subarray(0, 4096), { totalBytes: file.length, ...options });
  return Engine.start(module, { bytes: memoryBytes, threads: options.threads });
}

/** Logits after IDS. */
async function logitsOf(build, file, options = {}) {
  const engine = await start(build, file, options);
  const model = engine.loadModel([file], { totalBytes: file.length });
  const session = model.session(options);
  const threads = build.endsWith('-threads') ? (options.threads ?? 1) : 1;
  assert.equal(session.threads, threads);
  session.evaluate(IDS);
  const logits = session.logits().slice();
  session.free();
  model.free();
  engine.stop();
  return logits;
}

const LOOPED = 'tinyloop/v3-int2-factored.tinyloop';

for (const name of ['llama', 'qwen3_5-q4', 'gemma3-layers', LOOPED, 'tinyloop/v3-int4-direct.tinyloop']) {
  test(`${name}: every build, number of threads and batch gives the same logits`, async () => {
    const file = golden(name);
    const expected = await logitsOf(REFERENCE, file);
    assert.ok(expected.some((logit) => logit !== expected[0]));
    for (const build of runnableBuilds())
      for (const threads of [1, 2, 3])
        for (const batchSize of [1, 7, 64])
          assert.deepEqual(await logitsOf(build, file, { threads, batchSize }), expected, `${build} ${threads}`);
  });
}

test('a looped model: loops as it says, as a session wants, and changed between texts', async () => {
  const file = golden(LOOPED);
  const byLoops = [];
  for (const loops of [0, 1, 2, 4]) byLoops[loops] = await logitsOf(REFERENCE, file, { loops });
  assert.deepEqual(byLoops[0], byLoops[2]);
  assert.notDeepEqual(byLoops[1], byLoops[2]);
  assert.notDeepEqual(byLoops[4], byLoops[2]);

  const engine = await start(REFERENCE, file, { loops: 4 });
  const model = engine.loadModel([file]);
  assert.equal(model.info().loops, 2);
  const session = model.session({ loops: 4 });
  for (const loops of [1, 4, 2]) {
    session.setLoops(loops);
    session.evaluate(IDS);
    assert.deepEqual(session.logits().slice(), byLoops[loops]);
  }
  assert.throws(() => session.setLoops(5), /loops = 5: must be at least 1, and at most the session's 4/);
  assert.throws(() => model.session({ loops: 65 }), /loops = 65: must be at most 64/);
});

for (const build of runnableBuilds()) {
  test(`${build}: a model in chunks of any size is the same model`, async () => {
    const file = golden('llama');
    const expected = await logitsOf(build, file);
    for (const size of [1009, 65536]) {
      const engine = await start(build, file);
      const chunks = [];
      for (let at = 0; at < file.length; at += size) chunks.push(file.subarray(at, at + size));
      const session = engine.loadModel(chunks).session();
      session.evaluate(IDS);
      assert.deepEqual(session.logits().slice(), expected);
    }
  });

  test(`${build}: a plan is enough memory, and not much more`, async () => {
    const file = golden('llama');
    const module = await compiled(build);
    const planned = await plan(module, file.subarray(0, 256), { contextSize: 64 });
    const engine = await Engine.start(module, { bytes: planned.memoryBytes });
    assert.ok(engine.memoryBytes - planned.memoryBytes < 65536);
    assert.ok(engine.memoryBytes - planned.weightBytes - planned.sessionBytes < 8 << 20);
    const model = engine.loadModel([file]);
    assert.equal(model.info().weightBytes, planned.weightBytes);
    assert.equal(model.sessionBytes({ contextSize: 64 }), planned.sessionBytes);
    model.session({ contextSize: 64 }).evaluate(IDS);
  });

  test(`${build}: a cache of bytes is smaller, and answers the same in every build`, async () => {
    const file = golden('../../examples/models/stories/model.mlb'); // heads as wide as a block: narrower ones gain nothing
    const q8 = { contextSize: 512, kv: 'q8' };
    const logits = [];
    for (const name of new Set([REFERENCE, build])) {
      const planned = await plan(await compiled(name), file.subarray(0, 256), q8);
      const engine = await Engine.start(await compiled(name), { bytes: planned.memoryBytes });
      const model = engine.loadModel([file]);
      assert.equal(model.sessionBytes(q8), planned.sessionBytes);
      assert.ok(planned.sessionBytes < model.sessionBytes({ contextSize: 512 }));
      assert.throws(() => model.sessionBytes({ kv: 'q4' }), { code: 'ML_E_ARG', message: /kv = q4/ });
      assert.throws(() => model.session({ kv: 'q4' }), { code: 'ML_E_ARG', message: /kv = q4/ });
      const session = model.session(q8);
      session.evaluate(IDS);
      logits.push(session.logits().slice());
    }
    assert.deepEqual(logits[0], logits.at(-1));
    assert.notDeepEqual(logits[0], await logitsOf(build, file));
  });

  test(`${build}: failures are typed, say where, and leave the engine usable`, async () => {
    const file = golden('llama');
    const engine = await start(build, file);
    const bad = file.slice();
    bad[0] ^= 1;
    assert.throws(() => engine.loadModel([bad]), { name: 'KraflaError', code: 'ML_E_FORMAT', offset: 0 });
    assert.throws(() => engine.loadModel([file.subarray(0, -64)]), { code: 'ML_E_FORMAT' });
    assert.throws(() => engine.loadModel([file], { memoryLimit: 1000 }), { code: 'ML_E_NOMEM' });
    const model = engine.loadModel([file]);
    assert.throws(() => model.session({ kernels: 'avx2' }), { code: 'ML_E_ARG', message: /isa = avx2/ });
    assert.throws(() => model.session({ contextSize: 1 << 25 }), { code: 'ML_E_CONTEXT' });
    const session = model.session({ contextSize: 32 });
    assert.throws(() => session.evaluate([1, 1 << 20]), { code: 'ML_E_ARG' });
    assert.throws(() => session.evaluate(Array(33).fill(1)), { code: 'ML_E_CONTEXT' });
    assert.equal(session.position, 0);
    assert.equal(session.logits(), undefined);
    session.evaluate(IDS);
    assert.equal(session.position, IDS.length);
    assert.equal(session.truncate(4), 4);
    session.evaluate(IDS.slice(4));
    assert.deepEqual(session.logits().slice(), await logitsOf(build, file));
  });

  test(`${build}: memory that is too small, and memory that wasm cannot have`, async () => {
    const file = golden('llama');
    const module = await compiled(build);
    const engine = await Engine.start(module, { bytes: 0 });
    const model = engine.loadModel([file]);
    const moreAndMore = () => {
      for (;;) model.session({ contextSize: 64 });
    };
    assert.throws(moreAndMore, { code: 'ML_E_NOMEM', message: /the allocator has none/ });
    await assert.rejects(Engine.start(module, { bytes: 2 ** 33 }), { code: 'ML_E_NOMEM' });
  });

  test(`${build}: the sampler's exports`, async () => {
    const { exports } = await start(build, golden('llama'));
    const sampler = exports.ml_wasm_sampler_new(4, 0, 0, 0, 0, 0, 0, 0, 7, 0);
    assert.notEqual(sampler, 0);
    exports.ml_sampler_free(sampler);
    assert.equal(exports.ml_wasm_sampler_new(4, -1, 0, 0, 0, 0, 0, 0, 7, 0), 0);
    assert.equal(exports.ml_wasm_error_status(), 5);
  });
}

test('a worker that cannot start is done without', async () => {
  const file = golden('llama');
  const expected = await logitsOf(REFERENCE, file);
  globalThis.Worker = class {
    postMessage() {
      queueMicrotask(() => this.onerror({ message: 'refused' }));
    }
    terminate() {}
  };
  try {
    for (const build of runnableBuilds().filter((name) => name.endsWith('-threads'))) {
      const engine = await start(build, file, { threads: 3 });
      const session = engine.loadModel([file]).session({ threads: 3 });
      assert.equal(session.threads, 1);
      session.evaluate(IDS);
      assert.deepEqual(session.logits().slice(), expected);
      engine.stop();
    }
  } finally {
    delete globalThis.Worker;
  }
});

test('a program ends although its engine still has threads', () => {
  const program = `
    import { Engine } from './js/heap.js';
    import { compiled } from './tests/js/builds_under_test.mjs';
    await Engine.start(await compiled('simd128-threads'), { bytes: 1 << 20, threads: 3 });
    console.log('started');`;
  const options = { cwd: root, encoding: 'utf8', timeout: 20000 };
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], options);
  assert.deepEqual({ status, stdout }, { status: 0, stdout: 'started\n' });
});

test('a model is loaded while threads are on their way', async () => {
  const file = golden('llama');
  const expected = await logitsOf(REFERENCE, file);
  for (const build of runnableBuilds().filter((name) => name.endsWith('-threads'))) {
    const module = await compiled(build);
    const { memoryBytes } = await plan(module, file.subarray(0, 4096), { totalBytes: file.length, threads: 3 });
    const engine = await Engine.begin(module, { bytes: memoryBytes, threads: 3 });
    const model = engine.loadModel([file]);
    await engine.ready;
    const session = model.session({ threads: 3 });
    assert.equal(session.threads, 3);
    session.evaluate(IDS);
    assert.deepEqual(session.logits().slice(), expected);
    engine.stop();
  }
});
