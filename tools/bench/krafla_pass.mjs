// One pass of our own engine, in a worker of a page or in Node: { base, build, model, threads, kv, vocabulary, tests }.
// `load` is from the first byte asked for to the first token's logits, the wasm module's way included; `stages` says where
// its milliseconds go, and `token` what another token takes. With `copyOnly` it is `copy` instead: what the same bytes cost
// when they are only fetched and copied once. A browser that has just been started is slow at first, with either.
import { Engine, plan } from '../../js/heap.js';
import { CONTEXT, measure } from './passes.mjs';

const HEAD_BYTES = 1 << 16; // of the file: more than any header

/** The model's bytes as they come in, twice the same way. */
async function open(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  return { totalBytes: Number(response.headers.get('content-length')), reader: response.body.getReader() };
}

/** Milliseconds by name, added up: each from when the one before ended. */
function stopwatch() {
  const stages = {};
  let last = performance.now();
  const end = (name) => {
    const now = performance.now();
    stages[name] = (stages[name] ?? 0) + now - last;
    last = now;
  };
  return { stages, end };
}

async function loadEngine({ base, build, model: url, threads, kv }, end) {
  const [module, { totalBytes, reader }] = await Promise.all([
    WebAssembly.compileStreaming(fetch(`${base}/build/wasm/${build}${threads > 1 ? '-threads' : ''}.wasm`)),
    open(`${base}${url}`),
  ]);
  end('module');
  const first = await reader.read();
  end('wait');
  const settings = { contextSize: CONTEXT, threads, kv };
  const head = first.value.subarray(0, HEAD_BYTES);
  const { memoryBytes, weightBytes, sessionBytes } = await plan(module, head, { totalBytes, ...settings });
  end('plan');
  const engine = await Engine.begin(module, { bytes: memoryBytes, threads });
  const loading = engine.beginModel({ totalBytes });
  end('engine');
  for (let piece = first; !piece.done;) {
    loading.push(piece.value);
    end('pack');
    piece = await reader.read();
    end('wait');
  }
  const model = loading.finish();
  loading.free();
  end('pack');
  await engine.ready;
  end('threads');
  const session = model.session(settings);
  end('session');
  return { engine, session, memory: { memoryBytes: engine.memoryBytes, weightBytes, sessionBytes } };
}

async function copySeconds(url) {
  const started = performance.now();
  const { totalBytes, reader } = await open(url);
  const copy = new Uint8Array(totalBytes);
  let at = 0;
  for (let piece; !(piece = await reader.read()).done; at += piece.value.length) copy.set(piece.value, at);
  return (performance.now() - started) / 1000;
}

export async function pass(task) {
  if (task.copyOnly) return { copy: await copySeconds(`${task.base}${task.model}`) };
  const { stages, end } = stopwatch();
  const { engine, session, memory } = await loadEngine(task, end);
  session.evaluate([1]);
  end('token');
  const load = Object.values(stages).reduce((sum, ms) => sum + ms, 0) / 1000;
  const started = performance.now();
  session.evaluate([1]);
  const token = (performance.now() - started) / 1000;
  const { threads, kernels } = session;
  const timed = { evaluate: (ids) => session.evaluate(ids), clear: () => session.truncate(0) };
  const results = await measure(timed, task.vocabulary, task.tests);
  session.free();
  engine.stop();
  return { results, load, token, stages, memory, threads, kernels };
}

if (typeof self !== 'undefined' && typeof WorkerGlobalScope !== 'undefined') {
  self.onmessage = ({ data }) =>
    pass(data).then(
      (answer) => self.postMessage({ answer }),
      (error) => self.postMessage({ error: String(error?.stack ?? error) }),
    );
}
