// What is measured, as every engine goes through it: { evaluate(ids), clear() }, either of which may return a promise.
// `evaluate` appends ids and has the logits of the last one when it is done. Runs in Node and in pages alike.

/** Name -> ids that come before, ids that are timed, and how many of these at once. */
export const SPEED_TESTS = {
  pp128: { before: 0, ids: 128, atOnce: true },
  pp512: { before: 0, ids: 512, atOnce: true },
  tg64: { before: 0, ids: 64, atOnce: false },
  'tg64@1024': { before: 1024, ids: 64, atOnce: false },
};
export const CONTEXT = 1024 + 64 + 64; // what every session gets: the longest test, and a few for BOS and the like

const WARM_UP = { rounds: 3, leastMs: 5000, prompt: 64, decode: 16, pauseMs: 250 };

/** Ids from all over a vocabulary, the same for everybody; the first ones, which mean something special, are left out. */
export const madeUpIds = (n, vocabulary) =>
  Array.from({ length: n }, (_, i) => 32 + ((Math.imul(i + 1, 0x9e3779b1) >>> 0) % (vocabulary - 32)));

/**
 * Tokens per second of each test, and the seconds that it took with what comes before.
 * @param {string[]} tests of SPEED_TESTS
 */
export async function measure(engine, vocabulary, tests) {
  await warmUp(engine, vocabulary);
  const results = {};
  for (const name of tests) {
    const { before, ids, atOnce } = SPEED_TESTS[name];
    const all = madeUpIds(before + ids, vocabulary);
    const started = performance.now();
    await engine.clear();
    if (before) await engine.evaluate(all.slice(0, before));
    const from = performance.now();
    if (atOnce) await engine.evaluate(all.slice(before));
    else for (const id of all.slice(before)) await engine.evaluate([id]);
    const ended = performance.now();
    results[name] = { value: (1000 * ids) / (ended - from), seconds: (ended - started) / 1000 };
  }
  return results;
}

/** V8 compiles code well only once it has run for a while, and in threads that need a processor, as does a browser that has
 * just been started; everybody is given that while, and that processor. */
async function warmUp(engine, vocabulary) {
  const ids = madeUpIds(WARM_UP.prompt + WARM_UP.decode, vocabulary);
  const started = performance.now();
  for (let round = 0; round < WARM_UP.rounds || performance.now() - started < WARM_UP.leastMs; round++) {
    await engine.clear();
    await engine.evaluate(ids.slice(0, WARM_UP.prompt));
    for (const id of ids.slice(WARM_UP.prompt)) await engine.evaluate([id]);
    await pause();
  }
}

export const pause = () => new Promise((resolve) => setTimeout(resolve, WARM_UP.pauseMs));
