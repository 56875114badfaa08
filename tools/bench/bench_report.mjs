// Tables of the benchmark's rows, for people.
import { median, medianOf, SPEED, TESTS } from './bench_rows.mjs';

const number = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));
const table = (head, rows) => {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
};

const SUBJECT = ['system', 'version', 'runtime', 'build', 'threads', 'quant', 'kv'];
const keyOf = (row) =>
  SUBJECT.filter((field) => field in row)
    .map((field) => row[field])
    .join(' ');

/** Rows of each subject, in order. */
function grouped(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(keyOf(row), [...(groups.get(keyOf(row)) ?? []), row]);
  return [...groups.values()];
}

function cell(row) {
  if (!row) return '';
  if (row.error) return '–';
  const spread = row.min === row.max ? '' : ` (${number(row.min)}–${number(row.max)})`;
  return `${number(row.median)}${spread}`;
}

/** The end of a subject's name: how keys and values are kept, where it is not as usual. */
const keptAs = ({ kv }) => (kv ? `, ${kv} keys and values` : '');
const nameOf = ({ system, version, runtime, build, kv }) =>
  `${system}${system === 'krafla-web' ? '' : ` ${version}`}, ${runtime === 'native' ? build : `${runtime} ${build}`}${keptAs({ kv })}`;

function speeds(rows, quant) {
  const groups = grouped(rows.filter((row) => row.quant === quant));
  if (groups.length === 0) return '';
  const lines = groups.map((group) => [
    nameOf(group[0]),
    group[0].threads,
    ...TESTS.map((test) => cell(group.find((row) => row.test === test))),
  ]);
  return table(['', 'threads', ...SPEED, 'load, s', 'peak, MB'], lines);
}

// ---------------------------------------------------------------- ratios

const PEERS = [
  ['llama.cpp', { system: 'llama.cpp' }],
  ['wllama 2.3.1', { system: 'wllama', version: '2.3.1' }],
  ['wllama 3.13.0', { system: 'wllama', version: '3.13.0' }],
];
const US = [
  ['Chromium relaxed', { runtime: 'chromium', build: 'relaxed' }],
  ['Chromium SIMD128', { runtime: 'chromium', build: 'simd128' }],
  ['Firefox relaxed', { runtime: 'firefox', build: 'relaxed' }],
];

const times = (a, b) => (a === undefined || b === undefined ? '' : `${number(a / b)}×`);

function ratios(rows) {
  const native = rows.find(({ system, runtime }) => system === 'krafla-web' && runtime === 'native');
  const us = native ? [...US, [`native ${native.build}`, { runtime: 'native', build: native.build }]] : US;
  const lines = [];
  for (const quant of ['Q4_0', 'Q8_0'])
    for (const [name, fields] of us)
      for (const threads of [1, 2])
        for (const test of ['tg64', 'pp128']) {
          const common = { quant, threads, test };
          const ours = medianOf(rows, { ...common, ...fields, system: 'krafla-web' });
          const cells = PEERS.map(([, peer]) => times(ours, medianOf(rows, { ...common, ...peer })));
          if (cells.some(Boolean)) lines.push([name, quant, threads, test, ...cells]);
        }
  return table(['krafla-web', '', 'threads', '', ...PEERS.map(([name]) => `to ${name}`)], lines);
}

/** Our own figures to each other: threads, and long contexts. */
function inside(rows) {
  const lines = grouped(rows.filter(({ system }) => system === 'krafla-web')).map(
    ([{ system, version, runtime, build, threads, quant, kv }]) => {
      const subject = { system, version, runtime, build, quant, kv };
      const of = (test, n = threads) => medianOf(rows, { ...subject, threads: n, test });
      const scaling = threads === 1 ? ['', ''] : [times(of('pp128'), of('pp128', 1)), times(of('tg64'), of('tg64', 1))];
      return [`${runtime} ${build}${keptAs({ kv })}`, quant, threads, ...scaling, times(of('tg64@1024'), of('tg64'))];
    },
  );
  return table(['krafla-web', '', 'threads', 'pp128 to 1 thread', 'tg64 to 1 thread', 'tg64@1024 to tg64'], lines);
}

// ---------------------------------------------------------------- memory

/** Bytes of weights that a token reads (a tied embedding is all read, as the classifier), and what that is of what the
 * machine can read. */
function bytesRead(rows, details) {
  const lines = [];
  for (const [quant, { weightBytes, bandwidth }] of Object.entries(details.models))
    for (const group of grouped(rows.filter((row) => row.system === 'krafla-web' && row.quant === quant && !row.kv))) {
      const { threads, runtime, build } = group[0];
      const speed = group.find(({ test }) => test === 'tg64')?.median;
      if (speed === undefined) continue;
      const rate = (weightBytes * speed) / 1e9;
      const share = (100 * rate) / bandwidth[threads];
      lines.push([
        `${runtime} ${build}`,
        quant,
        threads,
        (weightBytes / 1e6).toFixed(1),
        number(rate),
        `${share.toFixed(0)} %`,
      ]);
    }
  return table(['tg64', '', 'threads', 'MB per token', 'GB/s', 'of what can be read'], lines);
}

function loadBesideCopy(load, copy, token) {
  const [ours, least] = [median(load), median(copy) + median(token)];
  return `${number(ours)} / ${number(least)} = ${times(ours, least)}`;
}

function memory(details) {
  const lines = details.subjects
    .filter(({ memory: seen }) => seen)
    .map(({ runtime, build, threads, quant, kv, memory: seen, samples, copy, token }) => {
      const { memoryBytes, weightBytes, sessionBytes } = seen[0];
      const rest = memoryBytes - weightBytes - sessionBytes;
      const load = samples.load ? loadBesideCopy(samples.load, copy, token) : '';
      const megabytes = [memoryBytes, weightBytes, sessionBytes, rest].map((bytes) => (bytes / 1e6).toFixed(1));
      return [`${runtime} ${build}${keptAs({ kv })}`, quant, threads, ...megabytes, load];
    });
  return table(
    ['', '', 'threads', 'wasm memory, MB', 'weights', 'session', 'rest', 'load / copy and a token, s'],
    lines,
  );
}

// ---------------------------------------------------------------- all of it

export function printTable(rows) {
  for (const quant of ['Q4_0', 'Q8_0']) {
    const text = speeds(rows, quant);
    if (text) console.log(`\n${quant}\n${text}`);
  }
  for (const group of grouped(rows)) {
    const failure = group.find(({ error }) => error);
    if (failure) console.log(`${keyOf(failure)}: ${failure.error}`);
  }
}

export function documentOf(rows, details) {
  const { processor, processors, system, node, date, bandwidth, models, repetitions } = details;
  const browsers = [...new Set(details.subjects.flatMap(({ browser = [] }) => browser))].join(', ');
  const versions = [...new Set(rows.map((row) => `${row.system} ${row.version}`))].join(', ');
  const rates = Object.entries(models).map(
    ([quant, model]) => `${model.bandwidth[1]} and ${model.bandwidth[2]} GB/s (${quant})`,
  );
  return `
${date}, ${processors} processors of an ${processor}, ${system}, Node ${node}, ${browsers}; ${versions}. \`make bench\`, up to
${repetitions} repetitions: medians, with the least and the most. Memory of 1 GB is read at ${bandwidth[1]} GB/s by one thread and ${bandwidth[2]} by
two, memory of the weights' size at ${rates.join(', ')}.

### Q4_0

${speeds(rows, 'Q4_0')}

### Q8_0

${speeds(rows, 'Q8_0')}

### In proportion

${ratios(rows)}

${inside(rows)}

### Memory

${bytesRead(rows, details)}

${memory(details)}

`;
}
