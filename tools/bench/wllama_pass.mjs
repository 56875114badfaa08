// One pass of wllama, in a page: { package: 'wllama-2' | '@wllama/wllama', model, threads, vocabulary, tests }.
// Everything is served by our own server; no layer goes to a graphics card.
import { CONTEXT, measure, pause, SPEED_TESTS } from './passes.mjs';

const folder = (name) => `/tools/bench/node_modules/${name}/esm`;
const absolute = (path) => new URL(path, location.href).href;
const WORD = ' the'; // one token, however often it is said
const silent = { debug() {}, log() {}, warn() {}, error: console.error };

/** A Blob of the file: its cache, which writes to disk first, is left out of the time. */
async function loadBlob(wllama, url, settings) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  await wllama.loadModel([await response.blob()], settings);
}

/** 2.3.1 evaluates ids that it is given. */
async function second({ package: name, model, threads, vocabulary, tests }) {
  const { Wllama } = await import(`${folder(name)}/index.js`);
  const paths = {};
  for (const kind of ['single-thread', 'multi-thread'])
    paths[`${kind}/wllama.wasm`] = absolute(`${folder(name)}/${kind}/wllama.wasm`);
  const wllama = new Wllama(paths, { suppressNativeLog: true, logger: silent });
  const started = performance.now();
  await loadBlob(wllama, model, { n_ctx: CONTEXT, n_threads: threads });
  await wllama.decode([1], {});
  const load = (performance.now() - started) / 1000;
  const timed = { evaluate: (ids) => wllama.decode(ids, {}), clear: () => wllama.kvClear() };
  const results = await measure(timed, vocabulary, tests);
  return { results, load, threads: wllama.getNumThreads() };
}

/** 3.x completes texts, and says how long it took for each phase. */
async function third({ package: name, model, threads, tests }) {
  const { Wllama } = await import(`${folder(name)}/index.js`);
  const wllama = new Wllama(
    { default: absolute(`${folder(name)}/wasm/wllama.wasm`) },
    { suppressNativeLog: true, logger: silent },
  );
  const started = performance.now();
  await loadBlob(wllama, model, { n_ctx: CONTEXT, n_threads: threads, n_gpu_layers: 0, n_parallel: 1, warmup: false });
  const complete = async (nPrompt, n) => {
    const prompt = WORD.repeat(nPrompt);
    const options = { prompt, max_tokens: n, temperature: 0, ignore_eos: true, cache_prompt: false };
    const { timings } = await wllama.createCompletion(options);
    if (timings.prompt_n !== nPrompt || timings.predicted_n !== n)
      throw new Error(`${nPrompt} and ${n} tokens were to be timed, not ${JSON.stringify(timings)}`);
    return timings;
  };
  await complete(1, 1);
  const load = (performance.now() - started) / 1000;
  await complete(64, 16);
  await pause();
  const results = {};
  for (const test of tests) {
    const { before, ids, atOnce } = SPEED_TESTS[test];
    const from = performance.now();
    const timings = atOnce ? await complete(ids, 1) : await complete(Math.max(before, 1), ids);
    const value = atOnce ? timings.prompt_per_second : timings.predicted_per_second;
    results[test] = { value, seconds: (performance.now() - from) / 1000 };
  }
  return { results, load, threads: wllama.getNumThreads() };
}

export const pass = (task) => (task.package === 'wllama-2' ? second(task) : third(task));
