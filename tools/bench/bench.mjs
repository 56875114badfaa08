#!/usr/bin/env node
// Measures krafla-web, wllama and llama.cpp on the same weights, in turns. See HELP below.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { failed, repetitionsFor, summarize, TESTS, SPEED } from './bench_rows.mjs';
import { ROOT, serve } from './bench_server.mjs';
import { documentOf, printTable } from './bench_report.mjs';
import { subjects } from './subjects.mjs';

const HELP = `usage: node tools/bench/bench.mjs [option]...

Measures prompts of 128 and 512 tokens, generating 64 tokens with nothing and with 1,024 tokens before them, the time from
opening or fetching (from this machine) to the first token, and peak memory, of

  krafla-web   native, in Chromium, Firefox and Node
  wllama       3.13.0 and 2.3.1 in Chromium, without a graphics card
  llama.cpp    as node-llama-cpp builds it

with 1 and 2 threads, and krafla-web in Chromium also with keys and values as bytes (q8), on the same weights: build/models/smollm2-135m.gguf quantized anew to Q4_0 and Q8_0, as GGUF and .mlb.
Everybody has a pass in turn, in a process or browser of its own, and then everybody again. Leave the machine alone meanwhile.

  --quick              one repetition, without prompts of 512 and contexts of 1,024
  --repetitions N      passes of each, default 3; what takes seconds is measured less often
  --only WORDS         only subjects with all of these words, of "krafla-web chromium relaxed 1 Q4_0"; may be repeated
  --tests LIST         of ${TESTS.join(',')}
  --mlb FILE           another model, for us only: a .mlb file
  --out FOLDER         for results.json (the rows) and details.json (machine, samples); default build/bench
  --document           also write the table into docs/PERFORMANCE.md
  --list               name the subjects
  --help               this text
`;
const PROMPT_TESTS = ['pp128', 'tg64', 'load', 'peak']; // of --quick
const DOCUMENT = path.join(ROOT, 'docs/PERFORMANCE.md');
const MARKS = ['<!-- made by make bench -->', '<!-- end -->'];
const ML_RUN = path.join(ROOT, 'build/native/ml_run');

function usageError(message) {
  process.stderr.write(`bench: ${message}; --help says what there is\n`);
  process.exit(2);
}

function readOptions() {
  let parsed;
  try {
    parsed = parseArgs({
      options: {
        quick: { type: 'boolean' },
        repetitions: { type: 'string' },
        only: { type: 'string', multiple: true },
        tests: { type: 'string' },
        mlb: { type: 'string' },
        out: { type: 'string', default: 'build/bench' },
        document: { type: 'boolean' },
        list: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    usageError(error.message);
  }
  const repetitions = Number(parsed.repetitions ?? (parsed.quick ? 1 : 3));
  if (!(Number.isInteger(repetitions) && repetitions >= 1 && repetitions <= 100))
    usageError(`--repetitions ${parsed.repetitions}: a number from 1 to 100`);
  const tests = parsed.tests?.split(',') ?? (parsed.quick ? PROMPT_TESTS : TESTS);
  const unknown = tests.find((test) => !TESTS.includes(test));
  if (unknown !== undefined) usageError(`--tests ${unknown}: not one of ${TESTS.join(', ')}`);
  return { ...parsed, repetitions, tests };
}

const label = ({ fields: { system, version, runtime, build, threads, quant, kv } }) =>
  [system, version, runtime, build, threads, quant, ...(kv ? [kv] : [])].join(' ');

function chosen(options) {
  const words = (options.only ?? []).map((text) => text.split(/\s+/).filter(Boolean));
  const list = subjects().filter(
    (subject) =>
      words.length === 0 || words.some((all) => all.every((word) => label(subject).split(' ').includes(word))),
  );
  if (list.length === 0) usageError(`--only ${options.only.join(' or ')}: nobody is called so; --list names them`);
  return options.mlb ? list.filter(({ fields }) => fields.quant === 'Q4_0') : list;
}

// ---------------------------------------------------------------- models

const info = (mlb) => JSON.parse(execFileSync(ML_RUN, ['--info', '--json', '-m', mlb], { encoding: 'utf8' }));

/** Per quant: files, and what the model is. Made from the published file when that is newer. */
function models(options, quants) {
  const found = {};
  if (options.mlb) {
    const mlb = path.resolve(options.mlb);
    const { weight_type: type, vocab: vocabulary } = info(mlb);
    const files = { mlb, gguf: path.join(ROOT, 'no GGUF of this model') };
    found.Q4_0 = { name: path.basename(mlb, '.mlb'), type, vocabulary, files };
    return found;
  }
  const source = 'build/models/smollm2-135m.gguf';
  if (!fs.existsSync(path.join(ROOT, source))) throw new Error(`${source} is not there: \`make models\` fetches it`);
  for (const quant of quants) {
    const out = `build/bench/models/smollm2-135m-${quant.toLowerCase()}`;
    const command = ['tools/bench/requantize.py', source, quant.toLowerCase(), out];
    const { status } = spawnSync('build/venv/bin/python', command, { cwd: ROOT, stdio: 'inherit' });
    if (status !== 0) throw new Error(`${out} could not be made`);
    const files = { mlb: path.join(ROOT, out, 'model.mlb'), gguf: path.join(ROOT, `${out}.gguf`) };
    found[quant] = { name: 'SmolLM2-135M', type: quant, vocabulary: info(files.mlb).vocab, files };
  }
  return found;
}

// ---------------------------------------------------------------- running

const urlOf = (file) => `/${path.relative(ROOT, file)}`;

/** What a subject has of its tests: samples, how often each is to be measured, and what went wrong. */
class Record {
  samples = {};
  wanted = {};
  extras = {};
  error = undefined;

  constructor(subject, options) {
    this.subject = subject;
    this.fields = { ...subject.fields };
    this.tests = options.tests.filter((test) => !subject.only || subject.only.includes(test));
    for (const test of this.tests) this.wanted[test] = options.repetitions;
  }

  due() {
    return this.tests.filter((test) => (this.samples[test]?.length ?? 0) < this.wanted[test]);
  }

  async pass(base, model) {
    const { threads } = this.fields;
    const urls = Object.fromEntries(Object.entries(model.files).map(([kind, file]) => [kind, urlOf(file)]));
    const tests = this.due().filter((test) => SPEED.includes(test));
    const task = { ...this.fields, base, urls, files: model.files, vocabulary: model.vocabulary, tests };
    const answer = await this.subject.pass(task);
    if (answer.threads !== threads) throw new Error(`${answer.threads} threads started of ${threads}`);
    for (const [test, { value, seconds }] of Object.entries(answer.results)) {
      (this.samples[test] ??= []).push(value);
      this.wanted[test] = repetitionsFor(seconds, this.wanted[test]);
    }
    if (this.tests.includes('load')) (this.samples.load ??= []).push(answer.load);
    if (this.tests.includes('peak') && answer.peak) (this.samples.peak ??= []).push(answer.peak / 1e6);
    for (const name of ['build', 'version']) if (answer[name]) this.fields[name] = answer[name];
    for (const name of ['memory', 'copy', 'token', 'stages', 'kernels', 'browser'])
      if (answer[name]) (this.extras[name] ??= []).push(answer[name]);
  }

  rows(model) {
    return this.tests.map((test) => {
      const quant = model.type === 'Q8_0' ? 'Q8_0' : 'Q4_0';
      const subject = { ...this.fields, model: model.name, quant, test };
      const samples = this.samples[test];
      return samples ? summarize(subject, samples) : failed(subject, this.error ?? 'no value');
    });
  }
}

async function runAll(options) {
  const records = chosen(options).map((subject) => new Record(subject, options));
  const found = models(options, new Set(records.map(({ fields }) => fields.quant)));
  const server = await serve();
  try {
    for (let repetition = 1; repetition <= options.repetitions; repetition++)
      for (const record of records) {
        if (record.error || record.due().length === 0) continue;
        const started = performance.now();
        try {
          await record.pass(server.base, found[record.fields.quant]);
        } catch (error) {
          record.error = error.message;
        }
        const seconds = ((performance.now() - started) / 1000).toFixed(1);
        process.stderr.write(
          `${repetition}/${options.repetitions} ${label(record)}: ${record.error ?? `${seconds} s`}\n`,
        );
      }
  } finally {
    server.close();
  }
  return { records, rows: records.flatMap((record) => record.rows(found[record.fields.quant])), models: found };
}

// ---------------------------------------------------------------- what it ran on

function bandwidth(megabytes) {
  const rates = {};
  for (const threads of [1, 2]) {
    const command = ['tools/bench/bandwidth.py', String(megabytes), String(threads)];
    rates[threads] = Number(spawnSync('build/venv/bin/python', command, { cwd: ROOT, encoding: 'utf8' }).stdout);
  }
  return rates;
}

function machine() {
  const cpu = os.cpus();
  return {
    processor: cpu[0]?.model ?? 'unknown',
    processors: cpu.length,
    memoryBytes: os.totalmem(),
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    node: process.version,
  };
}

function detailsOf({ records, models: found }, options) {
  const details = {
    date: new Date().toISOString().slice(0, 10),
    command: process.argv.slice(2).join(' '),
    ...machine(),
  };
  details.repetitions = options.repetitions;
  details.subjects = records.map(({ fields, samples, extras, error }) => ({ ...fields, samples, ...extras, error }));
  if (options.mlb) return details; // a trial of the benchmark itself
  details.models = Object.fromEntries(
    Object.entries(found).map(([quant, { files }]) => {
      const { weight_bytes: weightBytes } = info(files.mlb);
      return [quant, { weightBytes, bandwidth: bandwidth(Math.ceil(weightBytes / 2 ** 20)) }];
    }),
  );
  details.bandwidth = bandwidth(1024);
  return details;
}

function write(folder, rows, details) {
  fs.mkdirSync(folder, { recursive: true });
  for (const [name, value] of Object.entries({ 'results.json': rows, 'details.json': details })) {
    const file = path.join(folder, name);
    fs.writeFileSync(`${file}.tmp`, `${JSON.stringify(value, null, 1)}\n`);
    fs.renameSync(`${file}.tmp`, file);
  }
}

/** Puts the tables between the marks of docs/PERFORMANCE.md. */
function writeDocument(rows, details) {
  const text = fs.readFileSync(DOCUMENT, 'utf8');
  const [begin, end] = MARKS.map((mark) => text.indexOf(mark));
  if (begin < 0 || end < begin) throw new Error(`${DOCUMENT} lacks the marks ${MARKS.join(' and ')}`);
  const made = documentOf(rows, details);
  fs.writeFileSync(DOCUMENT, `${text.slice(0, begin)}${MARKS[0]}\n${made}${text.slice(end)}`);
}

const options = readOptions();
if (options.help) process.stdout.write(HELP);
else if (options.list) for (const subject of chosen(options)) console.log(label(subject));
else {
  try {
    const result = await runAll(options);
    const details = detailsOf(result, options);
    write(path.resolve(ROOT, options.out), result.rows, details);
    printTable(result.rows);
    if (options.document) writeDocument(result.rows, details);
    process.exitCode = result.rows.every((row) => row.error) ? 1 : 0;
  } catch (error) {
    process.stderr.write(`bench: ${error.message}\n`);
    process.exitCode = 1;
  }
}
