// One pass of llama.cpp as node-llama-cpp builds it: node llama_pass.mjs '{"model": FILE.gguf, "threads": 1, ...}'
// prints one line of JSON. Below node-llama-cpp's sampling, so that evaluating is all that is timed.
import fs from 'node:fs';
import { getLlama } from 'node-llama-cpp';
import { CONTEXT, measure } from './passes.mjs';

export async function openContext(llama, file, threads, contextSize) {
  const model = await llama.loadModel({ modelPath: file });
  const context = await model.createContext({ contextSize, threads, batchSize: 512 });
  const native = context._ctx; // its binding, which the public classes wrap
  let position = 0;
  const decode = async (ids, wanted) => {
    native.initBatch(ids.length);
    const indexes = native.addToBatch(0, position, Uint32Array.from(ids), Uint32Array.from(wanted));
    await native.decodeBatch();
    position += ids.length;
    return indexes;
  };
  return {
    model,
    native,
    decode,
    async evaluate(ids) {
      for (let at = 0; at < ids.length; at += 512) {
        const some = ids.slice(at, at + 512);
        await decode(some, at + some.length < ids.length ? [] : [some.length - 1]);
      }
    },
    clear() {
      native.removeTokenCellsFromSequence(0, 0, position);
      position = 0;
    },
  };
}

export const openLlama = (threads) => getLlama({ gpu: false, build: 'never', maxThreads: threads, logLevel: 'error' });

/** Its name in tables: the best of what llama.cpp says the processor has. */
export function isaOf(llama) {
  const features = llama._bindings.systemInfo();
  const has = (name) => new RegExp(`\\b${name} = 1`).test(features);
  if (has('AVX512_VNNI')) return 'avx512vnni';
  if (has('AVX512')) return 'avx512';
  if (has('AVX_VNNI')) return 'avxvnni';
  if (has('AVX2')) return 'avx2';
  return has('NEON') ? 'neon' : 'scalar';
}

const packageFile = new URL('./node_modules/node-llama-cpp/package.json', import.meta.url);
const packageVersion = JSON.parse(fs.readFileSync(packageFile, 'utf8')).version;

const peakBytes = () => 1024 * Number(/^VmHWM:\s+(\d+)/m.exec(fs.readFileSync('/proc/self/status', 'latin1'))[1]);

async function pass({ model: file, threads, vocabulary, tests }) {
  const llama = await openLlama(threads);
  const started = performance.now();
  const engine = await openContext(llama, file, threads, CONTEXT);
  await engine.evaluate([1]);
  const load = (performance.now() - started) / 1000;
  const results = await measure(engine, vocabulary, tests);
  const version = `${packageVersion} (${llama.llamaCppRelease.release})`;
  return { results, load, peak: peakBytes(), build: isaOf(llama), version, threads: engine.native.getThreads() };
}

if (process.argv[2]) {
  fs.writeSync(1, `${JSON.stringify(await pass(JSON.parse(process.argv[2])))}\n`);
  process.exit(0); // llama.cpp's threads would keep it
}
