// One pass of llama.cpp as node-llama-cpp builds it: node llama_pass.mjs '{"model": FILE.gguf, "threads": 1, ...}'
// prints one line of JSON.
import fs from 'node:fs';
import { isaOf, openContext, openLlama } from './llama_context.mjs';
import { CONTEXT, measure } from './passes.mjs';

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

fs.writeSync(1, `${JSON.stringify(await pass(JSON.parse(process.argv[2])))}\n`);
process.exit(0); // llama.cpp's threads would keep it
