// service.js - what the thread with the model does for the thread without: one function for each call.

import { Core } from './core.js';
import { KraflaError } from './errors.js';
import { inspect, load } from './load.js';

/**
 * @param {{ pull: (id: number) => Promise<Uint8Array | undefined>, onProgress: (event: object) => void }} page
 * @returns {Record<string, (params: any, context: { signal?: AbortSignal }) => any>}
 */
export function createService({ pull, onProgress }) {
  let core;

  const guarded = (use) => (params, context) => {
    if (!core) throw new KraflaError('KRAFLA_E_CLOSED', 'there is no model, or no longer');
    return use(params, context);
  };

  return {
    async load({ recipe, options }, { signal }) {
      core = new Core(await load(recipe, options, { pull, onProgress, signal }));
      return core.info();
    },
    inspect: ({ recipe, options }, { signal }) => inspect(recipe, options, { pull, signal }),
    begin: guarded(({ prompt, options }) => core.begin(prompt, options)),
    step: guarded((what) => core.step(what)),
    stop: guarded((id) => core.stop(id)),
    end: guarded((id) => core.end(id)),
    tokenize: guarded(({ what, options }) => core.tokenize(what, options)),
    detokenize: guarded(({ ids, options }) => core.detokenize(ids, options)),
    score: guarded((what, { signal }) => core.score(what, { signal })),
    bench: guarded((options, { signal }) => core.bench(options, { signal })),
    close() {
      core?.free();
      core = undefined;
    },
  };
}
