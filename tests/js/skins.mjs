// Models for tests of the package, loaded both ways: in this thread and in a worker.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { loadModel } from '../../js/index.js';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
export const STORIES_LOOP = '../../examples/models/stories-loop'; // from where the others are
export const packagePath = (name) => `${ROOT}build/packages/${name}`;
export const packageBytes = (name, file) => new Uint8Array(fs.readFileSync(`${packagePath(name)}/${file}`));

/** Loads a package, hands it over, closes it. */
export async function withModel(name, options, use) {
  const model = await loadModel(packagePath(name), { threads: 1, ...options });
  try {
    return await use(model);
  } finally {
    await model.close();
  }
}

/** One test for each skin. `use` gets the option that chooses it. */
export function onBothSkins(name, use) {
  for (const [skin, worker] of Object.entries({ 'in process': false, 'in a worker': true }))
    test(`${name} (${skin})`, () => use({ worker }));
}

/** What native ml_run generates at temperature 0: a text, or ids where it is asked for them by ids. */
export function native(name, ...options) {
  const command = ['-m', packagePath(name), '--quiet', ...options];
  return execFileSync(`${ROOT}build/native/ml_run`, command, { encoding: 'utf8' });
}

export const nativeIds = (name, ids, n, ...options) =>
  native(name, '--ids', [...ids].join(','), '-n', String(n), ...options)
    .trim()
    .split(/[\s,]+/)
    .map(Number);

/** A generation that has begun to show pieces, and its first ones. */
export async function firstPieces(answer, n) {
  const pieces = [];
  for await (const piece of answer) {
    pieces.push(piece);
    if (pieces.length === n) break;
  }
  return pieces;
}

export async function rejectsWith(promise, code, pattern = /./) {
  await assert.rejects(promise, (error) => {
    assert.equal(error.name, 'KraflaError', error.stack);
    assert.equal(error.code, code, error.message);
    assert.match(error.message, pattern);
    return true;
  });
}
