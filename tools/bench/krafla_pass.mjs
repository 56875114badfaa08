// One pass of our own engine, in a worker of a page or in Node: { base, build, model, threads, kv, vocabulary, tests }.
// `load` is from the first byte asked for to the first token's logits, the wasm module's way included; `copy` is what the
// same bytes cost when they are only fetched and copied once.
import { Engine, plan } from '../../js/heap.js';
import { CONTEXT, measure } from './passes.mjs';

const HEAD_BYTES = 1 << 16; // of the file: more than any header

/** The model's bytes as they come in, twice the same way. */
async function open(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  return { totalBytes: Number(response.headers.get('content-length')), reader: response.body.getReader() };
}

async function loadEngine({ base, build, model: url, threads, kv }) {
  const [module, { totalBytes, reader }] = await Promise.all([
    WebAssembly.compileStreaming(fetch(`${base}/build/wasm/${build}${threads > 1 ? '-threads' : ''}.wasm`)),
    open(`${base}${url}`),
  ]);
  const first = await reader.read();
  const settings = { contextSize: CONTEXT, threads, kv };
  const head = first.value.subarray(0, HEAD_BYTES);
  const { memoryBytes, weightBytes, sessionBytes } = await plan(module, head, { totalBytes, ...settings });
  const engine = await Engine.start(module, { bytes: memoryBytes, threads });
  const loading = engine.beginModel({ totalBytes });
  for (let piece = first; !piece.done; piece = await reader.read()) loading.push(piece.value);
  const model = loading.finish();
  loading.free();
  const session = model.session(settings);
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
  const started = performance.now();
  const { engine, session, memory } = await loadEngine(task);
  session.evaluate([1]);
  const load = (performance.now() - started) / 1000;
  const { threads, kernels } = session;
  const timed = { evaluate: (ids) => session.evaluate(ids), clear: () => session.truncate(0) };
  const results = await measure(timed, task.vocabulary, task.tests);
  session.free();
  engine.stop();
  const copy = await copySeconds(`${task.base}${task.model}`);
  return { results, load, copy, memory, threads, kernels };
}

if (typeof self !== 'undefined' && typeof WorkerGlobalScope !== 'undefined') {
  self.onmessage = ({ data }) =>
    pass(data).then(
      (answer) => self.postMessage({ answer }),
      (error) => self.postMessage({ error: String(error?.stack ?? error) }),
    );
}
