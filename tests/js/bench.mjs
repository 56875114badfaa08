// Tokens per second of a session, in Node and in a page alike.

const now = () => performance.now();

/** The best of a few rounds: what else the machine does only makes it slower. */
export function bench(session, ids, nPredict, rounds = 5) {
  const best = { prompt: 0, decode: 0, kernels: session.kernels, threads: session.threads };
  for (let round = 0; round < rounds; round++) {
    session.truncate(0);
    let start = now();
    session.evaluate(ids);
    best.prompt = Math.max(best.prompt, (1000 * ids.length) / (now() - start));
    start = now();
    for (let i = 0; i < nPredict; i++) session.evaluate([ids[i % ids.length]]);
    best.decode = Math.max(best.decode, (1000 * nPredict) / (now() - start));
  }
  return best;
}

export function printBench({ prompt, decode, kernels, threads }) {
  console.log(`${kernels}, ${threads} thread(s): prompt ${prompt.toFixed(1)}, decode ${decode.toFixed(1)} tokens/s`);
}
