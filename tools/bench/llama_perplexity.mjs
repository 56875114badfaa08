#!/usr/bin/env node
// Perplexity as `ml_run --perplexity` computes it, by llama.cpp and by us, on the same weights, ids and windows:
//
//     node tools/bench/llama_perplexity.mjs MODEL.gguf MODEL.mlb IDS [WINDOW [THREADS]]
//
// IDS is a file of token ids. Windows follow each other without overlap; the first id of each is not scored.
// Of each position llama.cpp tells the largest logit, the next id's, and the sum of exp(logit - largest) over all.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { openContext, openLlama } from './llama_context.mjs';

const [gguf, mlb, idsFile, window = '512', threads = '2'] = process.argv.slice(2);
if (!idsFile) {
  process.stderr.write('usage: node tools/bench/llama_perplexity.mjs MODEL.gguf MODEL.mlb IDS [WINDOW [THREADS]]\n');
  process.exit(2);
}
const ids = fs
  .readFileSync(idsFile, 'utf8')
  .split(/[\s,]+/)
  .filter(Boolean)
  .map(Number);

async function theirs() {
  const llama = await openLlama(Number(threads));
  const engine = await openContext(llama, gguf, Number(threads), Number(window));
  const sampler = new llama._bindings.AddonSampler(engine.model._model);
  sampler.applyConfig({ temperature: 0 });
  let sum = 0;
  let scored = 0;
  for (let at = 0; at + 1 < ids.length; at += Number(window)) {
    const some = ids.slice(at, at + Number(window));
    engine.clear();
    const indexes = await engine.decode(some, some.keys());
    for (let i = 0; i + 1 < some.length; i++) {
      const next = some[i + 1];
      const asked = [[next], false, false, false, 1];
      const [, , , logits, total] = await engine.native.sampleToken(indexes[i], sampler, false, false, asked, true);
      const pairs = Array.from({ length: logits.length / 2 }, (_, k) => logits.slice(2 * k, 2 * k + 2));
      const [, logit] = pairs.find(([id]) => id === next);
      sum += Math.log(total) - (logit - pairs[0][1]);
      scored++;
    }
  }
  return { perplexity: Math.exp(sum / scored), scored };
}

function ours() {
  const options = [
    '-m',
    mlb,
    '--ids',
    idsFile,
    '--perplexity',
    '--json',
    '--quiet',
    '--ctx',
    window,
    '--threads',
    threads,
  ];
  return JSON.parse(execFileSync('build/native/ml_run', options, { encoding: 'utf8' }));
}

const [a, b] = [await theirs(), ours()];
console.log(`llama.cpp   ${a.perplexity.toFixed(4)}  (${a.scored} ids scored)`);
console.log(
  `krafla-web  ${b.perplexity.toFixed(4)}  (${b.scored_ids} ids scored), ${(100 * (b.perplexity / a.perplexity - 1)).toFixed(2)} %`,
);
process.exit(0);
