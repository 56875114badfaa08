#!/usr/bin/env node
// cli.js - the package on the command line: run, chat, info, bench.

import { KraflaError, loadModel, probe } from './index.js';
import { nodeModule } from './platform.js';

const HELP = `krafla-web runs language models on the CPU.

usage: krafla-web run   MODEL PROMPT [option]...    goes on with a text ('-': from standard input)
       krafla-web chat  MODEL [option]...           talks; or answers one --prompt
       krafla-web info  MODEL [option]...           what the model is and needs
       krafla-web bench MODEL [option]...           how fast it is here

MODEL is the folder of a model package, its model.json, a .mlb file, or a URL of one of these.

  -n, --max-tokens N          default: until the model or the context ends
  -t, --threads N             default: most of the processors
  -c, --context N             tokens to keep room for; default 4096, or the model's most
      --kv TYPE               keys and values as f32, or q8: less memory, other rounding
      --loops N               of a TinyLoop model; default: as its file says
      --temperature T         default 0: always the likeliest
      --top-k N, --top-p P, --min-p P
      --seed N                default: another one each time
      --repetition-penalty X
      --stop TEXT             ends the answer; may be repeated
      --system TEXT           chat: the system's message
      --prompt TEXT           chat: one message instead of a conversation
      --tokenizer FILE        for a bare .mlb
      --build NAME            simd128, relaxed, and each with -threads
      --json                  one JSON object on standard output
  -q, --quiet                 neither progress nor timings
  -h, --help

Ctrl-C ends an answer; twice, the program. Results go to standard output, the rest to standard error.
Exit codes: 0 done, 1 a failure (its code is told), 2 wrong usage, 130 interrupted.
`;

const number = { type: 'string' };
const text = { type: 'string' };
const OPTIONS = {
  'max-tokens': { ...number, short: 'n' },
  threads: { ...number, short: 't' },
  context: { ...number, short: 'c' },
  kv: text,
  loops: number,
  temperature: number,
  'top-k': number,
  'top-p': number,
  'min-p': number,
  seed: number,
  'repetition-penalty': number,
  stop: { ...text, multiple: true },
  system: text,
  prompt: text,
  tokenizer: text,
  build: text,
  json: { type: 'boolean' },
  quiet: { type: 'boolean', short: 'q' },
  help: { type: 'boolean', short: 'h' },
};

class UsageError extends Error {}

function parse() {
  try {
    return nodeModule('util').parseArgs({ options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error.message);
  }
}

function numberOf(values, name) {
  if (values[name] === undefined) return undefined;
  const value = Number(values[name]);
  if (values[name].trim() === '' || !Number.isFinite(value))
    throw new UsageError(`--${name} ${values[name]}: must be a number`);
  return value;
}

const loadOptionsOf = (values) => ({
  threads: numberOf(values, 'threads'),
  contextSize: numberOf(values, 'context'),
  kv: values.kv,
  loops: numberOf(values, 'loops'),
  tokenizer: values.tokenizer,
  build: values.build,
});

const generateOptionsOf = (values) => ({
  maxTokens: numberOf(values, 'max-tokens'),
  temperature: numberOf(values, 'temperature'),
  topK: numberOf(values, 'top-k'),
  topP: numberOf(values, 'top-p'),
  minP: numberOf(values, 'min-p'),
  seed: numberOf(values, 'seed'),
  repetitionPenalty: numberOf(values, 'repetition-penalty'),
  stop: values.stop,
});

// ---------------------------------------------------------------- the terminal

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

function showProgress({ phase, loaded, total }) {
  const share = total ? ` ${Math.floor((100 * loaded) / total)} %` : '';
  process.stderr.write(`\r\x1b[K${phase === 'ready' ? '' : `loading ${megabytes(loaded)}${share}`}`);
}

/** The first Ctrl-C ends what `stop` ends, the second the program. */
function onInterrupt(stop) {
  let times = 0;
  const listener = () => {
    if (++times > 1) process.exit(130);
    stop();
  };
  process.on('SIGINT', listener);
  return () => process.off('SIGINT', listener);
}

async function load(source, values) {
  const controller = new AbortController();
  const forget = onInterrupt(() => controller.abort(new DOMException('interrupted', 'AbortError')));
  const onProgress = process.stderr.isTTY && !values.quiet ? showProgress : undefined;
  try {
    return await loadModel(source, { ...loadOptionsOf(values), onProgress, signal: controller.signal });
  } finally {
    forget();
  }
}

/** Shows an answer as it comes, or as JSON at its end. */
async function show(answer, { json, quiet }) {
  const forget = onInterrupt(() => answer.stop());
  try {
    if (!json) {
      for await (const piece of answer) process.stdout.write(piece);
      process.stdout.write('\n');
    }
    const result = await answer;
    if (json) printJson(result);
    else if (!quiet) {
      const { usage, timings, finishReason } = result;
      const prompt = `prompt ${usage.promptTokens} tokens, ${timings.promptTokensPerSecond.toFixed(1)}/s`;
      const answered = `answer ${usage.completionTokens} tokens, ${timings.tokensPerSecond.toFixed(1)}/s`;
      process.stderr.write(`[${prompt}; ${answered}; ${finishReason}]\n`);
    }
    return result;
  } finally {
    forget();
  }
}

const printJson = (value) =>
  process.stdout.write(`${JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? String(item) : item), 2)}\n`);

function printTable(facts) {
  const rows = Object.entries(facts).filter(([, value]) => value !== undefined && typeof value !== 'object');
  for (const [name, value] of rows) {
    const shown = name.endsWith('Bytes') ? `${value} (${megabytes(value)})` : value;
    process.stdout.write(
      `${name.padEnd(26)}${typeof shown === 'number' && !Number.isInteger(shown) ? shown.toFixed(2) : shown}\n`,
    );
  }
}

async function readAll(stream) {
  let all = '';
  stream.setEncoding('utf8');
  for await (const piece of stream) all += piece;
  return all;
}

// ---------------------------------------------------------------- commands

async function run(model, prompt, values) {
  if (prompt === undefined) throw new UsageError('run needs a prompt');
  await show(model.generate(prompt === '-' ? await readAll(process.stdin) : prompt, generateOptionsOf(values)), values);
}

async function talk(model, values) {
  const chat = model.chat({ system: values.system, ...generateOptionsOf(values) });
  if (values.prompt !== undefined) return void (await show(chat.send(values.prompt), values));
  const { stdin, stderr } = process;
  const lines = nodeModule('readline').createInterface({
    input: stdin,
    output: stdin.isTTY ? stderr : undefined,
    prompt: '> ',
  });
  lines.on('SIGINT', () => process.emit('SIGINT'));
  let isOpen = true;
  lines.on('close', () => (isOpen = false)); // the last lines come after it
  let leave = onInterrupt(() => lines.close());
  lines.prompt();
  for await (const line of lines) {
    if (line.trim() !== '') {
      leave();
      await show(chat.send(line), values);
      leave = onInterrupt(() => lines.close());
    }
    if (isOpen) lines.prompt();
  }
  leave();
}

async function main() {
  const { values, positionals } = parse();
  const [command, source, prompt, ...more] = positionals;
  if (values.help) return void process.stdout.write(HELP);
  if (!['run', 'chat', 'info', 'bench'].includes(command))
    throw new UsageError(command ? `${command}: no such command` : 'which command: run, chat, info or bench?');
  if (source === undefined) throw new UsageError(`${command} needs a model`);
  if (more.length > 0 || (prompt !== undefined && command !== 'run'))
    throw new UsageError(`unexpected argument ${more[0] ?? prompt}`);
  if (command === 'info') {
    const { threads, contextSize, kv, loops } = loadOptionsOf(values);
    const report = await probe(source, { threads, contextSize, kv, loops });
    return values.json ? printJson(report) : printTable(report);
  }
  const model = await load(source, values);
  try {
    if (command === 'run') await run(model, prompt, values);
    else if (command === 'chat') await talk(model, values);
    else (values.json ? printJson : printTable)(await model.bench());
  } finally {
    await model.close();
  }
}

function explain(error) {
  if (error instanceof UsageError) return [2, `${error.message} (--help tells more)`];
  if (error.name === 'AbortError') return [130, error.message];
  if (error instanceof KraflaError) return [1, `${error.code}: ${error.message}`];
  return [1, error.stack];
}

main().catch((error) => {
  const [code, message] = explain(error);
  process.stderr.write(`krafla-web: ${message}\n`);
  process.exitCode = code;
});
