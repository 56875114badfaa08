// ml_run for a wasm module: takes ml_run's options and prints what it prints, as far as tests need it.
//
//     node tests/js/wasm_run.mjs build/wasm/simd128.wasm --isa list
//     node tests/js/wasm_run.mjs build/wasm/simd128.wasm --trace -m model.mlb --ids 1,2,3 [--batch N] [--threads N]
//     node tests/js/wasm_run.mjs build/wasm/simd128.wasm --bench -m model.mlb [--threads N] [--ids ...] [-n N]
//     node tests/js/wasm_run.mjs build/wasm/simd128.wasm --serve
//
// The last takes one run after another from its input, each as a line, a JSON list of options, and answers with a line,
// {"code": 0, "out": "what the run prints"} or {"code": 1, "err": "what is wrong"}: it spares thousands of starts.
//
// Exit code 3, with a reason, where this Node cannot run the module; 1 for any other failure.
import fs from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { Engine, plan } from '../../js/heap.js';
import { bench, printBench } from './session_bench.mjs';

const HEAD_BYTES = 1 << 17; // header and flags of any number of layers
const CHUNK_BYTES = 1000003; // awkward on purpose

const OPTIONS = {
  trace: { type: 'boolean' },
  bench: { type: 'boolean' },
  serve: { type: 'boolean' },
  model: { type: 'string', short: 'm' },
  ids: { type: 'string' },
  batch: { type: 'string', short: 'b', default: '0' },
  threads: { type: 'string', short: 't', default: '1' },
  ctx: { type: 'string', short: 'c', default: '0' },
  predict: { type: 'string', short: 'n', default: '64' },
  kv: { type: 'string', default: 'f32' },
  isa: { type: 'string' },
  mmap: { type: 'boolean' }, // no such thing here: weights are packed, whatever is asked for
};

function* chunksOf(file, size) {
  const handle = fs.openSync(file);
  for (let n; (n = fs.readSync(handle, (chunksOf.buffer ??= new Uint8Array(size)))) > 0;)
    yield chunksOf.buffer.subarray(0, n);
  fs.closeSync(handle);
}

function headOf(file) {
  const head = new Uint8Array(HEAD_BYTES);
  const handle = fs.openSync(file);
  const n = fs.readSync(handle, head);
  fs.closeSync(handle);
  return head.subarray(0, n);
}

/** What ml_run would print. `options` are OPTIONS with their values. */
async function run(module, options) {
  if (options.isa === 'list') return (await Engine.start(module)).kernels.map((name) => `${name}\n`).join('');
  const totalBytes = fs.statSync(options.model).size;
  const settings = {
    contextSize: Number(options.ctx),
    batchSize: Number(options.batch),
    threads: Number(options.threads),
    kv: options.kv,
  };
  const ids = options.ids?.split(',').map(Number) ?? Array.from({ length: 128 }, (_, i) => i + 1);
  const { memoryBytes } = await plan(module, headOf(options.model), { totalBytes, ...settings });
  const lines = [];
  const onStage = (stage, layer, position, n, hash) =>
    lines.push(`${position} ${layer} ${stage} ${n} ${hash.toString(16).padStart(16, '0')}\n`);
  const engine = await Engine.start(module, { bytes: memoryBytes, threads: settings.threads, onStage });
  try {
    const model = engine.loadModel(chunksOf(options.model, CHUNK_BYTES), { totalBytes });
    const session = model.session({ ...settings, kernels: options.isa, trace: options.trace ?? false });
    if (session.threads !== Math.max(1, settings.threads) && engine.exports.ml_thread_lend)
      throw new Error(`${session.threads} threads started of ${settings.threads}`);
    if (options.trace) session.score(ids);
    if (options.bench) printBench(bench(session, ids, Number(options.predict)));
    session.free();
    model.free();
  } finally {
    engine.stop();
  }
  return lines.join('');
}

/** { code, out } or { code, err } of a run, as a process would end. */
async function outcomeOf(module, options) {
  try {
    return { code: 0, out: await run(module, options) };
  } catch (error) {
    if (error.code === 'KRAFLA_E_BUILD') return { code: 3, err: `Node ${process.version}: ${error.message}` };
    return { code: 1, err: error.code?.startsWith('ML_') ? `${error.code}: ${error.message}` : error.stack };
  }
}

async function serve(module) {
  for await (const line of createInterface({ input: process.stdin })) {
    const { values } = parseArgs({ args: JSON.parse(line), options: OPTIONS });
    process.stdout.write(`${JSON.stringify(await outcomeOf(module, values))}\n`);
  }
}

function fail(message, code = 1) {
  process.stderr.write(`wasm_run: ${message}\n`);
  process.exit(code);
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: OPTIONS });
const bytes = fs.readFileSync(positionals[0] ?? fail('which module? See the top of wasm_run.mjs', 2));
if (!WebAssembly.validate(bytes)) fail(`Node ${process.version} lacks instructions of ${positionals[0]}`, 3);
const compiled = await WebAssembly.compile(bytes);
if (values.serve) {
  await serve(compiled);
} else {
  const { code, out, err } = await outcomeOf(compiled, values);
  if (code) fail(err, code);
  process.stdout.write(out);
}
