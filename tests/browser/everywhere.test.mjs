// The promise of docs/NUMERICS.md as users meet it: a prompt has the same answer, token for token and letter for letter, in
// the native program, in Node and in every browser, from every build and with any number of threads. What the native
// program says is what the others are held to.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import test, { before } from 'node:test';
import * as api from '../../js/index.js';
import { usableBuilds } from '../../js/builds.js';
import { BROWSERS } from './browsers_under_test.mjs';
import { serveCheckout } from './checkout_server.mjs';
import { ROOT } from './demo_page.mjs';
import { inPage, TASKS } from './page_tasks.mjs';
import { fetchSmolLM2, SMOLLM2 } from './smollm2.mjs';
import greedy from './tasks/greedy.mjs';

const MODELS = {
  'the bundled model': {
    folder: 'examples/models/stories',
    prompts: ['Once upon a time', 'One day, a little fox found a red ball. ', 'Then'],
    maxTokens: 60,
  },
  SmolLM2: {
    folder: path.relative(ROOT, SMOLLM2),
    fetch: fetchSmolLM2,
    prompts: ['Once upon a time, there was a lighthouse', 'The capitals of Europe: Paris, '],
    maxTokens: 16,
  },
};
const WAYS = [
  { build: 'simd128', threads: 1 },
  { build: 'relaxed', threads: 1 },
  { build: 'simd128-threads', threads: 2 },
  { build: 'relaxed-threads', threads: 2 },
];

function mlRun(folder, options, input) {
  const command = ['-m', folder, '--quiet', ...options];
  return execFileSync('build/native/ml_run', command, { cwd: ROOT, encoding: 'utf8', input });
}

const numbers = (text) => (text.match(/\d+/g) ?? []).map(Number);

/** Of each prompt: its ids, the answer's ids and the answer's text; the program ends a text with a line break of its own. */
function nativeAnswers({ folder, prompts, maxTokens }) {
  return prompts.map((prompt) => {
    const promptIds = numbers(mlRun(folder, ['--tokenize', '-'], prompt));
    const tokens = numbers(mlRun(folder, ['--ids', promptIds.join(','), '-n', String(maxTokens)]));
    const text = mlRun(folder, ['--prompt', prompt, '-n', String(maxTokens)]).replace(/\n$/, '');
    return { promptIds, tokens, text };
  });
}

const expected = new Map();
const lacking = new Map(); // why
before(() => {
  for (const [name, model] of Object.entries(MODELS)) {
    const problem = model.fetch?.();
    if (problem) lacking.set(name, problem);
    else expected.set(name, nativeAnswers(model));
  }
});

/** One test for each model and way. `run` performs the task greedy; `builds` are those that run there. */
async function compare(t, builds, run) {
  for (const [name, model] of Object.entries(MODELS))
    for (const options of WAYS) {
      const { build, threads } = options;
      const missing = builds.includes(build) ? lacking.get(name) : `${t.name} does not run the build ${build}`;
      await t.test(`${name}, ${build}, threads: ${threads}`, { skip: missing }, async () => {
        const { answers, ...ran } = await run({ ...model, fetch: undefined, options });
        assert.deepEqual(ran, options);
        assert.deepEqual(answers, expected.get(name));
        assert.ok(answers.every(({ tokens }) => tokens.length > 0));
      });
    }
}

test('the native program, with 2 threads', (t) => {
  assert.ok(expected.size > 0);
  for (const [name, answers] of expected) {
    const { folder, maxTokens } = MODELS[name];
    for (const { promptIds, tokens } of answers) {
      const options = ['--ids', promptIds.join(','), '-n', String(maxTokens), '--threads', '2'];
      assert.deepEqual(numbers(mlRun(folder, options)), tokens);
    }
  }
  t.diagnostic(`compared: ${[...expected.keys()].join(', ')}`);
});

test('Node', async (t) => {
  const builds = [...usableBuilds({ threads: 1 }), ...usableBuilds({ threads: 2 })];
  await compare(t, builds, ({ folder, ...task }) => greedy(api, { ...task, source: path.join(ROOT, folder) }));
});

for (const [browser, { whyNot, launch }] of Object.entries(BROWSERS))
  test(browser, { skip: whyNot() }, async (t) => {
    const server = await serveCheckout({ extra: TASKS });
    const { page, close } = await launch();
    try {
      await page.goto(server.address);
      const builds = await page.evaluate(async () => {
        const { usableBuilds: usable } = await import('/js/builds.js');
        return [...usable({ threads: 1 }), ...usable({ threads: 2 })];
      });
      await compare(t, builds, ({ folder, ...task }) => inPage(page, 'greedy', { ...task, source: `/${folder}/` }));
    } finally {
      await close();
      server.close();
    }
  });
