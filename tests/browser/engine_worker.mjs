// An engine in a page's worker, told what to do by one message: { build, model, settings, action, ids, predict }.
import { usableBuilds } from '../../js/builds.js';
import { Engine, plan } from '../../js/heap.js';
import { bench } from '../js/session_bench.mjs';

/** The lines that ml_run --trace prints. */
function trace(session, ids, lines) {
  session.score(ids);
  return { lines, threads: session.threads, kernels: session.kernels };
}

async function perform({ build, model: url, settings, action, ids, predict }) {
  if (action === 'builds') return usableBuilds(settings);
  const module = await WebAssembly.compileStreaming(fetch(`/build/wasm/${build}.wasm`));
  const started = performance.now();
  const response = await fetch(url);
  const totalBytes = Number(response.headers.get('content-length'));
  const reader = response.body.getReader();
  const first = await reader.read();
  const { memoryBytes } = await plan(module, first.value, { totalBytes, ...settings });
  const lines = [];
  const onStage = (stage, layer, position, n, hash) =>
    lines.push(`${position} ${layer} ${stage} ${n} ${hash.toString(16).padStart(16, '0')}`);
  const engine = await Engine.start(module, { bytes: memoryBytes, threads: settings.threads, onStage });
  const loading = engine.beginModel({ totalBytes });
  for (let piece = first; !piece.done; piece = await reader.read()) loading.push(piece.value);
  const model = loading.finish();
  loading.free();
  const loadMs = performance.now() - started;
  const session = model.session({ ...settings, trace: action === 'trace' });
  const answer = action === 'trace' ? trace(session, ids, lines) : bench(session, ids, predict);
  engine.stop();
  return { ...answer, loadMs };
}

self.onmessage = ({ data }) =>
  perform(data).then(
    (answer) => self.postMessage({ answer }),
    (error) => self.postMessage({ error: error.stack ?? String(error) }),
  );
