// SmolLM2 for tests in browsers: that of `make models`, or else fetched and converted by the same tool.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { ROOT } from './demo_page.mjs';

const NAME = 'smollm2-135m-q4';
// What is fetched here lies apart from build/models, where other suites would find it in the midst of their work, and take
// longer.
const OURS = path.join(ROOT, 'build/browser-models');
const isIn = (folder) => fs.existsSync(path.join(folder, NAME, 'model.json'));

export const SMOLLM2 = path.join(isIn(path.join(ROOT, 'build/models')) ? path.join(ROOT, 'build/models') : OURS, NAME);

/** Fetches it if it is not there; several tests at once wait for one another. @returns {string | undefined} why it cannot */
export function fetchSmolLM2() {
  if (fs.existsSync(path.join(SMOLLM2, 'model.json'))) return undefined;
  fs.mkdirSync(OURS, { recursive: true });
  const fetch = ['tools/fetch_models.py', 'smollm2-135m', '--variants', 'q4', '--folder', OURS];
  const command = [path.join(OURS, 'lock'), 'build/venv/bin/python', ...fetch];
  const { status, stderr, error } = spawnSync('flock', command, { cwd: ROOT, encoding: 'utf8' });
  return status === 0 ? undefined : `no SmolLM2: ${(stderr || String(error)).trim().split('\n').at(-1)}`;
}
