// The examples for Node and C do what they say. (That of a page: tests/browser.)
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import test from 'node:test';
import { ROOT, native, packagePath } from './skins.mjs';

const options = { cwd: ROOT, encoding: 'utf8', timeout: 60000 };

test('examples/talk.mjs answers', () => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['examples/talk.mjs', packagePath('llama'), 'Hello'],
    options,
  );
  assert.deepEqual([status, stderr], [0, '']);
  assert.ok(stdout.trim().length > 0);
});

test('examples/continue.c goes on as ml_run does', () => {
  const program = 'build/native/continue';
  execFileSync(
    'cc',
    ['-std=c11', '-Isrc', '-o', program, 'examples/continue.c', 'build/native/libml.a', '-lm', '-pthread'],
    options,
  );
  const { status, stdout } = spawnSync(program, [packagePath('llama'), 'the end'], options);
  assert.equal(status, 0);
  assert.equal(stdout.trimEnd(), native('llama', '--prompt', 'the end', '-n', '40').trimEnd());
  assert.equal(spawnSync(program, [packagePath('nothing'), 'x'], options).status, 1);
});
