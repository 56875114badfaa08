// The command line: what it prints where, wrong usage, and Ctrl-C.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import test from 'node:test';
import { ROOT, native, packagePath } from './skins.mjs';

const CLI = `${ROOT}js/cli.js`;
const MODEL = packagePath('llama');
const HELD = new URL('./held_answer.mjs', import.meta.url).href;
const cli = (options, input) =>
  spawnSync(process.execPath, [CLI, ...options], { encoding: 'utf8', input, timeout: 60000 });

test('run goes on with a text as ml_run does', () => {
  const { status, stdout, stderr } = cli(['run', MODEL, 'the end', '-n', '30', '-t', '1']);
  assert.equal(status, 0, stderr);
  assert.equal(stdout.trimEnd(), native('llama', '--prompt', 'the end', '-n', '30').trimEnd());
  assert.match(stderr, /^\[prompt \d+ tokens, .*; answer \d+ tokens, .*; (length|stop)\]\n$/);
  assert.equal(cli(['run', MODEL, '-', '-n', '30', '-q'], 'the end').stdout, stdout);
});

test('--json prints one object', () => {
  const run = JSON.parse(
    cli(['run', MODEL, 'the end', '-n', '5', '--json', '--temperature', '1', '--seed', '3']).stdout,
  );
  assert.equal(run.usage.completionTokens, run.tokens.length);
  assert.equal(run.seed, 3);
  const info = JSON.parse(cli(['info', MODEL, '--json']).stdout);
  assert.equal(info.name, 'tiny llama');
  assert.ok(info.memoryBytes > 0);
  assert.ok(JSON.parse(cli(['bench', MODEL, '--json']).stdout).tokensPerSecond > 0);
});

test('info and bench print tables', () => {
  assert.match(cli(['info', MODEL]).stdout, /^weightType +Q8_0$/m);
  assert.match(cli(['bench', MODEL]).stdout, /^tokensPerSecond +[\d.]+$/m);
});

test('chat answers one message, or line by line', () => {
  const one = cli(['chat', MODEL, '--system', 'Be brief.', '--prompt', 'Hello', '-n', '8', '--json']);
  assert.equal(one.status, 0, one.stderr);
  assert.ok(JSON.parse(one.stdout).tokens.length > 0);
  const two = cli(['chat', MODEL, '-n', '8'], 'Hello\n\nAnd now?\n');
  assert.equal(two.status, 0, two.stderr);
  assert.equal(two.stderr.match(/\[prompt/g).length, 2);
});

test('help, and wrong usage', () => {
  assert.match(cli(['--help']).stdout, /usage: krafla-web run/);
  const wrong = [
    [],
    ['sing', MODEL],
    ['run'],
    ['run', MODEL],
    ['info', MODEL, 'x'],
    ['run', MODEL, 'x', '-n', 'many'],
    ['run', MODEL, 'x', '--top', '3'],
  ];
  for (const options of wrong) {
    const { status, stdout, stderr } = cli(options);
    assert.deepEqual([status, stdout], [2, ''], options.join(' '));
    assert.match(stderr, /^krafla-web: .*--help.*\n$/);
  }
});

test('failures are told in a line with their code', () => {
  for (const [options, pattern] of [
    [['run', `${MODEL}/nothing.mlb`, 'x'], /ML_E_IO: .*nothing\.mlb/],
    [['run', MODEL, 'x', '--temperature=-1'], /ML_E_ARG: temperature/],
    [['run', MODEL, 'word '.repeat(1000)], /ML_E_CONTEXT: prompt/],
    [['run', `${MODEL}/tokenizer.mlt`, 'x'], /ML_E_FORMAT/],
    [['info', 'http://127.0.0.1:1/model.mlb'], /KRAFLA_E_NETWORK/],
  ]) {
    const { status, stdout, stderr } = cli(options);
    assert.deepEqual([status, stdout], [1, ''], options.join(' '));
    assert.match(stderr, pattern);
    assert.equal(stderr.split('\n').length, 2);
  }
});

/**
 * Begins an answer that comes to a halt (held_answer.mjs), sends Ctrl-C as often as asked, each time once the one before
 * has been heard, and gives the exit code and what stood on standard error.
 */
async function interrupt(times, hold) {
  const command = ['--import', HELD, CLI, 'run', MODEL, 'a story', '-t', '1'];
  const child = spawn(process.execPath, command, { env: { ...process.env, HOLD: hold } });
  const exit = once(child, 'exit');
  let stderr = '';
  let heard = 0;
  child.stdout.resume();
  child.stderr.on('data', (data) => {
    stderr += data;
    const told = stderr.match(/^(held|heard)$/gm)?.length ?? 0;
    for (; heard < Math.min(told, times); heard++) child.kill('SIGINT');
  });
  const [code] = await exit;
  return { code, stderr };
}

test('Ctrl-C ends the answer', async () => {
  const { code, stderr } = await interrupt(1, 'until-interrupted');
  assert.equal(code, 0, stderr);
  assert.match(stderr, /; stopped\]/);
});

test('Ctrl-C twice ends the program, whatever it is at', async () => {
  const { code, stderr } = await interrupt(2, 'for-ever');
  assert.equal(code, 130, stderr);
  assert.doesNotMatch(stderr, /\]/);
});
