const NAME = 'krafla-web';

async function keptWeights() {
  const cache = await caches.open(NAME);
  for (const request of await cache.keys()) {
    const bytes = new Uint8Array(await (await cache.match(request)).arrayBuffer());
    if (bytes.length > 100_000) return { cache, request, bytes };
  }
  return undefined;
}

export default async function keeps({ loadModel }, { server, step }) {
  const outcome = async (fault, options) => {
    try {
      // In this thread, whose storage the steps can reach.
      const given = { worker: false, threads: 1, timeout: 1000, retries: 0, ...options };
      const model = await loadModel(`${server}/${fault}/llama/model.json`, given);
      const { tokens } = await model.generate([3, 5, 7, 11], { maxTokens: 8 });
      await model.close();
      return `${tokens.length} tokens`;
    } catch (error) {
      return error.code ?? error.stack;
    }
  };
  const cached = (fault = 'plain') => outcome(fault, { cache: true });
  const anyKept = async () => ((await keptWeights()) ? 'kept' : 'none kept');
  const steps = {
    twice: async () => [await outcome('plain', { cache: true, worker: true }), await cached()],
    'not asked for': async () => [await outcome('plain')],
    async damaged() {
      const { cache, request, bytes } = await keptWeights();
      bytes[bytes.length - 5] ^= 1;
      await cache.put(request, new Response(bytes));
      return [await cached(), await cached()];
    },
    async 'bad downloads'() {
      await caches.delete(NAME);
      return [await cached('flipped'), await cached('stall'), await cached('short'), await anyKept()];
    },
    async 'no room'() {
      await caches.delete(NAME);
      const { put } = Cache.prototype;
      Cache.prototype.put = () => Promise.reject(new DOMException('full', 'QuotaExceededError'));
      const loaded = await cached();
      Cache.prototype.put = put;
      return [loaded, await anyKept()];
    },
  };
  return steps[step]();
}
