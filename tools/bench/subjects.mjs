// Who is measured, and how a pass of each is made. A pass answers { results, load, peak, ... } or throws.
import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { runInBrowser } from './browsers.mjs';
import { CONTEXT, madeUpIds, SPEED_TESTS } from './passes.mjs';
import { ROOT } from './bench_server.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const versionOf = (folder) => JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8')).version;
const installed = (name) => {
  const folder = here(`node_modules/${name}`);
  return fs.existsSync(folder) ? versionOf(folder) : 'not installed';
};

const ML_RUN = path.join(ROOT, 'build/native/ml_run');
const NEW_NODE = path.join(ROOT, 'tests/node_modules/.bin/node'); // knows relaxed SIMD
const node = fs.existsSync(NEW_NODE) ? NEW_NODE : process.execPath;

// ---------------------------------------------------------------- child processes

const peakOf = (pid) => {
  try {
    return 1024 * Number(/^VmHWM:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0);
  } catch {
    return 0; // it has ended
  }
};

/** Runs a program; resolves to what it printed, its seconds and the most memory that it was seen to have. */
function run(program, options) {
  return new Promise((resolve, reject) => {
    let peak = 0;
    const started = performance.now();
    const child = execFile(program, options, { cwd: ROOT, maxBuffer: 1 << 24 }, (error, stdout, stderr) => {
      clearInterval(watch);
      if (error) reject(new Error(stderr.trim().split('\n').pop() || error.message));
      else resolve({ stdout, peak, seconds: (performance.now() - started) / 1000 });
    });
    const watch = setInterval(() => (peak = Math.max(peak, peakOf(child.pid))), 2);
  });
}

// ---------------------------------------------------------------- passes

async function nativePass({ build, threads, kv = 'f32', vocabulary, tests, files }) {
  const common = ['-m', files.mlb, '--isa', build, '--threads', String(threads), '--kv', kv, '--quiet'];
  const first = await run(ML_RUN, [...common, '--ids', '1', '-n', '1', '--ctx', String(CONTEXT)]);
  const answer = { results: {}, load: first.seconds, peak: 0, threads };
  for (const test of tests) {
    const { before, ids, atOnce } = SPEED_TESTS[test];
    const prompt = madeUpIds(atOnce ? ids : Math.max(before, 1), vocabulary);
    const sizes = ['-n', String(atOnce ? 0 : ids), '--ctx', String(CONTEXT), '--repeat', '3'];
    const { stdout, peak, seconds } = await run(ML_RUN, [
      ...common,
      '--bench',
      '--json',
      '--ids',
      prompt.join(),
      ...sizes,
    ]);
    const found = JSON.parse(stdout);
    const value = atOnce ? found.prompt_per_second : found.generated_per_second;
    answer.results[test] = { value, seconds: seconds / 3 };
    answer.peak = Math.max(answer.peak, peak);
  }
  return answer;
}

async function nodePass({ build, threads, kv, vocabulary, tests, base, urls }) {
  const task = { base, build, model: urls.mlb, threads, kv, vocabulary, tests };
  const pass = async (options) =>
    JSON.parse((await run(node, [here('node_pass.mjs'), JSON.stringify({ ...task, ...options })])).stdout);
  return withCopy(pass);
}

/** What is copied for comparison has a process or a browser of its own, as new as the one in which the model is loaded. */
async function withCopy(pass) {
  const answer = await pass({});
  const { copy } = await pass({ copyOnly: true });
  return { ...answer, copy };
}

async function llamaPass({ threads, vocabulary, tests, files }) {
  const { stdout } = await run(node, [
    here('llama_pass.mjs'),
    JSON.stringify({ model: files.gguf, threads, vocabulary, tests }),
  ]);
  return JSON.parse(stdout);
}

const browserPass = ({ runtime, base, build, threads, kv, vocabulary, tests, urls }) =>
  withCopy((options) =>
    runInBrowser(runtime, base, {
      module: 'krafla_pass.mjs',
      worker: true,
      task: { build, model: urls.mlb, threads, kv, vocabulary, tests, ...options },
    }),
  );

const wllamaPass =
  (name) =>
  ({ runtime, base, threads, vocabulary, tests, urls }) =>
    runInBrowser(runtime, base, {
      module: 'wllama_pass.mjs',
      worker: false,
      task: { package: name, model: urls.gguf, threads, vocabulary, tests },
    });

// ---------------------------------------------------------------- the list

/** The native kernels worth a row: the best that this machine has, and what most have. */
function nativeKernels() {
  try {
    const names = execFileSync(ML_RUN, ['--isa', 'list'], { encoding: 'utf8' }).trim().split('\n');
    return [...new Set([names[0], names.includes('avx2') ? 'avx2' : names[0]])];
  } catch {
    return ['scalar']; // its passes will say why
  }
}

const ours = { system: 'krafla-web', version: versionOf(ROOT) };
const SHORT = ['pp128', 'tg64', 'load', 'peak'];
const DECODING = ['tg64', 'tg64@1024']; // what keys and values matter to

/** Every subject: fields of its rows, its pass, and the tests to leave out for want of time. */
export function subjects() {
  const list = [];
  const add = (fields, pass, { q8 = true, only } = {}) => {
    for (const quant of q8 ? ['Q4_0', 'Q8_0'] : ['Q4_0'])
      for (const threads of [1, 2])
        list.push({ fields: { ...fields, threads, quant }, pass, only: quant === 'Q8_0' ? (q8.only ?? only) : only });
  };
  nativeKernels().forEach((build, i) => add({ ...ours, runtime: 'native', build }, nativePass, { q8: i === 0 }));
  for (const build of ['relaxed', 'simd128']) add({ ...ours, runtime: 'chromium', build }, browserPass);
  const bytes = { ...ours, runtime: 'chromium', build: 'relaxed', kv: 'q8' };
  add(bytes, browserPass, { q8: false, only: DECODING });
  add({ ...ours, runtime: 'firefox', build: 'relaxed' }, browserPass, { q8: false });
  add({ ...ours, runtime: 'node', build: 'relaxed' }, nodePass, { q8: false });
  const llama = { system: 'llama.cpp', version: installed('node-llama-cpp'), runtime: 'native', build: 'native' };
  add(llama, llamaPass);
  for (const name of ['wllama-2', '@wllama/wllama']) {
    const fields = { system: 'wllama', version: installed(name), runtime: 'chromium', build: 'simd128' };
    add(fields, wllamaPass(name), { q8: { only: SHORT } });
  }
  return list;
}
