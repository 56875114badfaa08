// Tokens per second of a session, in Node and in a page alike.

/** A clock in milliseconds: of the processor's time for one thread where that can be asked, so that other programs on
 * the machine count less, and else of the day's. */
function clockFor(threads) {
  const cpu = globalThis.process?.cpuUsage;
  if (threads > 1 || !cpu) return () => performance.now();
  return () => {
    const { user, system } = cpu();
    return (user + system) / 1000;
  };
}

/** The best of a few rounds: what else the machine does only makes it slower. */
export function bench(session, ids, nPredict, rounds = 5) {
  const now = clockFor(session.threads);
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
