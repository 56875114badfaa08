// index.js - the package: loadModel, probe, and the error that both throw. See docs/API.md.

import { KraflaError } from './errors.js';
import { startHost } from './host.js';
import { Model } from './model.js';
import { LOAD, PROBE, checkOptions } from './options.js';
import { describeSource } from './source.js';

export { KraflaError };

/** Sources that stay with the page, which is asked for a chunk at a time. */
class Offers {
  #pulls = new Map();
  #last = 0;

  offer = (pull, cancel) => {
    this.#pulls.set(++this.#last, { pull, cancel });
    return this.#last;
  };

  pull = (id) => this.#pulls.get(id)?.pull();

  end() {
    for (const { cancel } of this.#pulls.values()) cancel?.();
    this.#pulls.clear();
  }
}

const asText = (url) => (url instanceof URL ? url.href : url);

/** Addresses that a worker would take for relative to itself are made whole here. */
const absolute = (url) => (url === undefined ? undefined : new URL(asText(url), globalThis.document?.baseURI).href);

export async function loadModel(source, options = {}) {
  const { signal, onProgress, worker, workerUrl, tokenizer, wasmUrl, ...rest } = checkOptions(options, LOAD);
  signal?.throwIfAborted();
  const offers = new Offers();
  const recipe = describeSource(source, offers.offer);
  const tokenizerRecipe = tokenizer && describeSource(tokenizer, offers.offer, 'tokenizer');
  const progress = (event) => !signal?.aborted && onProgress?.(event);
  const settings = { ...rest, tokenizer: tokenizerRecipe, wasmUrl: absolute(wasmUrl) };
  let host;
  try {
    host = await startHost({ worker, workerUrl: asText(workerUrl), signal }, { pull: offers.pull, progress });
    const info = await host.call('load', { recipe, options: settings }, { signal });
    return new Model(host, info);
  } catch (error) {
    host?.end(new KraflaError('KRAFLA_E_CLOSED', 'the model was not loaded'));
    throw error;
  } finally {
    offers.end();
  }
}

export async function probe(source, options = {}) {
  const { signal, wasmUrl, ...rest } = checkOptions(options, PROBE);
  const offers = new Offers();
  const recipe = describeSource(source, offers.offer);
  const host = await startHost({ worker: false }, { pull: offers.pull, progress: () => {} });
  try {
    const settings = { ...rest, wasmUrl: absolute(wasmUrl) };
    const { manifest = {}, ...facts } = await host.call('inspect', { recipe, options: settings }, { signal });
    const { name, architecture, license, files = {} } = manifest;
    const downloadBytes = Object.values(files).reduce((sum, { size = 0 }) => sum + size, 0) || facts.fileBytes;
    return { name, architecture, license, downloadBytes, ...facts, fits: canHave(facts.memoryBytes) };
  } finally {
    host.end(new KraflaError('KRAFLA_E_CLOSED', 'probed'));
    offers.end();
  }
}

/** Whether a memory of that size can be made; nothing of it is touched. */
function canHave(bytes) {
  try {
    const pages = Math.ceil(bytes / 65536);
    new WebAssembly.Memory({ initial: pages, maximum: pages });
    return true;
  } catch {
    return false;
  }
}
