// The benchmark's arithmetic, its rows, what it refuses, and one small run.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { checkRow, failed, median, medianOf, ratio, repetitionsFor, summarize } from '../../tools/bench/bench_rows.mjs';
import { documentOf } from '../../tools/bench/bench_report.mjs';
import { madeUpIds } from '../../tools/bench/passes.mjs';
import { root } from './builds_under_test.mjs';

const SUBJECT = {
  system: 'krafla-web',
  version: '1',
  runtime: 'native',
  build: 'avx2',
  threads: 1,
  model: 'tiny',
  quant: 'Q4_0',
  test: 'tg64',
};

const bench = (...options) =>
  spawnSync(process.execPath, ['tools/bench/bench.mjs', ...options], { cwd: root, encoding: 'utf8' });

test('medians', () => {
  assert.equal(median([3]), 3);
  assert.equal(median([10, 9, 100]), 10);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.throws(() => median([]), RangeError);
});

test('a row sums up its samples', () => {
  const expected = { ...SUBJECT, median: 10, min: 9, max: 100, unit: 'tokens/s' };
  assert.deepEqual(summarize(SUBJECT, [10, 9, 100]), expected);
  assert.equal(summarize({ ...SUBJECT, test: 'load' }, [0.123456789]).median, 0.12346);
  assert.equal(summarize({ ...SUBJECT, test: 'peak' }, [1]).unit, 'MB');
  for (const samples of [[], [0], [1, NaN], [1, -1], [Infinity], ['1']])
    assert.throws(() => summarize(SUBJECT, samples), RangeError, String(samples));
  assert.deepEqual(failed(SUBJECT, 'no\nbrowser'), { ...SUBJECT, error: 'no' });
});

test('what is no row is refused', () => {
  const row = summarize(SUBJECT, [1, 2, 3]);
  const wrong = [
    { system: 'us' },
    { runtime: 'deno' },
    { test: 'tg128' },
    { threads: 0 },
    { threads: '1' },
    { version: undefined },
    { quant: 'Q5_0' },
    { unit: 's' },
    { min: 2.5 },
    { max: 1 },
    { median: NaN },
    { note: 'fast' },
    { kv: 'f32' },
    { kv: undefined },
    { error: 'both' },
  ];
  assert.equal(checkRow(row), row);
  assert.equal(checkRow({ ...row, kv: 'q8' }).kv, 'q8');
  for (const change of wrong) assert.throws(() => checkRow({ ...row, ...change }), TypeError, JSON.stringify(change));
  assert.throws(() => failed(SUBJECT, ''), TypeError);
});

test('ratios are of rows that were measured', () => {
  const rows = [summarize(SUBJECT, [30]), summarize({ ...SUBJECT, system: 'wllama' }, [10])];
  rows.push(failed({ ...SUBJECT, system: 'llama.cpp' }, 'not installed'));
  assert.equal(ratio(rows, { system: 'krafla-web' }, { system: 'wllama' }), 3);
  assert.equal(ratio(rows, { system: 'krafla-web' }, { system: 'llama.cpp' }), undefined);
  assert.equal(medianOf(rows, { system: 'wllama', threads: 2 }), undefined);
});

test('keys and values as bytes are rows of their own', () => {
  const chromium = { ...SUBJECT, runtime: 'chromium', build: 'relaxed' };
  const bytes = { ...chromium, kv: 'q8' };
  const rows = [
    summarize({ ...bytes, test: 'tg64@1024' }, [60]),
    summarize(bytes, [75]),
    summarize({ ...chromium, test: 'tg64@1024' }, [40]),
    summarize(chromium, [80]),
    summarize({ ...bytes, threads: 2 }, [150]),
  ];
  assert.equal(medianOf(rows, chromium), 80);
  assert.equal(medianOf(rows, bytes), 75);
  const rates = { 1: 10, 2: 20 };
  const models = { Q4_0: { weightBytes: 1e8, bandwidth: rates } };
  const lines = documentOf(rows, { models, bandwidth: rates, subjects: [] }).split('\n');
  const named = (start) => lines.filter((line) => line.startsWith(`| ${start} |`));
  assert.deepEqual(named('krafla-web, chromium relaxed, q8 keys and values'), [
    '| krafla-web, chromium relaxed, q8 keys and values | 1 |  |  | 75.0 | 60.0 |  |  |',
    '| krafla-web, chromium relaxed, q8 keys and values | 2 |  |  | 150 |  |  |  |',
  ]);
  assert.deepEqual(named('krafla-web, chromium relaxed'), [
    '| krafla-web, chromium relaxed | 1 |  |  | 80.0 | 40.0 |  |  |',
  ]);
  assert.deepEqual(named('chromium relaxed, q8 keys and values'), [
    '| chromium relaxed, q8 keys and values | Q4_0 | 1 |  |  | 0.80× |',
    '| chromium relaxed, q8 keys and values | Q4_0 | 2 |  | 2.00× |  |',
  ]);
  assert.deepEqual(named('chromium relaxed'), [
    '| chromium relaxed | Q4_0 | 1 |  |  | 0.50× |',
    '| chromium relaxed | Q4_0 | 1 | 100.0 | 8.00 | 80 % |',
  ]);
});

test('keys and values as bytes are measured in Chromium', () => {
  const { status, stdout } = bench('--list', '--only', 'q8');
  assert.equal(status, 0);
  const [one, two, ...others] = stdout.trim().split('\n');
  assert.match(one, /^krafla-web \S+ chromium relaxed 1 Q4_0 q8$/);
  assert.match(two, /^krafla-web \S+ chromium relaxed 2 Q4_0 q8$/);
  assert.deepEqual(others, []);
});

test('what takes long is measured less often', () => {
  assert.deepEqual(
    [0.1, 5, 20].map((seconds) => repetitionsFor(seconds, 5)),
    [5, 2, 1],
  );
  assert.equal(repetitionsFor(5, 1), 1);
});

test('ids are of the vocabulary, and not special', () => {
  const ids = madeUpIds(1000, 101);
  assert.ok(ids.every((id) => Number.isInteger(id) && id >= 32 && id < 101));
  assert.ok(new Set(ids).size > 60);
});

test('wrong usage is refused in one line', () => {
  const cases = [
    ['--repetitions', '0'],
    ['--repetitions', 'many'],
    ['--repetitions', '1.5'],
    ['--tests', 'pp128,pp129'],
    ['--only', 'netscape'],
    ['--fast'],
    ['model.mlb'],
  ];
  for (const options of cases) {
    const { status, stderr } = bench(...options);
    assert.equal(status, 2, options.join(' '));
    assert.match(stderr, /^bench: .+--help.*\n$/, options.join(' '));
  }
  assert.equal(bench('--help').status, 0);
});

test('a small model, natively, and beside it what has no such file', () => {
  const MAX_SEQ = 32; // its offset in the header: room for the longest test
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-'));
  try {
    const model = fs.readFileSync(new URL('tests/golden/llama.mlb', root));
    model.writeUInt32LE(2048, MAX_SEQ);
    fs.writeFileSync(path.join(folder, 'small.mlb'), model);
    const only = ['--only', 'krafla-web native 1', '--only', 'llama.cpp 1', '--repetitions', '2'];
    const { status, stderr } = bench(...only, '--mlb', path.join(folder, 'small.mlb'), '--out', folder);
    assert.equal(status, 0, stderr);
    const rows = JSON.parse(fs.readFileSync(path.join(folder, 'results.json')));
    rows.forEach(checkRow);
    const ours = rows.filter(({ system }) => system === 'krafla-web');
    assert.ok(ours.length >= 6);
    assert.ok(ours.every((row) => row.median > 0 && row.model === 'small'));
    const theirs = rows.filter(({ system }) => system === 'llama.cpp');
    assert.equal(theirs.length, 6);
    assert.ok(theirs.every((row) => row.error));
    const { subjects } = JSON.parse(fs.readFileSync(path.join(folder, 'details.json')));
    assert.equal(subjects[0].samples.pp128.length, 2);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});
