// cache.js - files of a package that were fetched before, kept by the browser (Cache Storage). A file is kept under its
// SHA-256, wherever it came from: no kept file is ever out of date. It is checked like a download when it is used.
// Without such a storage (Node, pages that are not secure, a full disk) everything is fetched as ever.

import { firstBytes } from './download.js';
import { KraflaError } from './errors.js';

const NAME = 'krafla-web';
const keyOf = (sha256) => `/${NAME}/${sha256}`; // it has to be a URL; nobody is asked for it

const openCache = () => Promise.resolve(globalThis.caches?.open(NAME)).catch(() => undefined);
const find = async (key) => (await openCache())?.match(key);

/**
 * The file, read from where it is kept, or kept while it is read for the first time.
 * @param {import('./source.js').SourceFile} file with its SHA-256
 */
export function kept(file) {
  const key = keyOf(file.sha256);
  return {
    ...file,
    async *chunks(options) {
      const found = await find(key);
      yield* found ? chunksOf(found, file.name) : keeping(file.chunks(options), key);
    },
    async head(n, options) {
      const found = await find(key);
      return found
        ? { bytes: await firstBytes(chunksOf(found, file.name), n), size: file.size }
        : file.head(n, options);
    },
    /** For a file that turned out to be another one. */
    forget: async () => (await openCache())?.delete(key),
  };
}

/** The file as it is now, or as it last was where no server answers. @param {import('./source.js').SourceFile} file */
export function keptForOffline(file) {
  return {
    ...file,
    async *chunks(options) {
      let found;
      try {
        yield* keeping(file.chunks(options), file.name);
      } catch (error) {
        if (error.code === 'KRAFLA_E_NETWORK') found = await find(file.name);
        if (!found) throw error;
      }
      if (found) yield* chunksOf(found, file.name);
    },
  };
}

async function* chunksOf(response, name) {
  const reader = response.body.getReader();
  try {
    for (let read; !(read = await reader.read()).done;) yield read.value;
  } catch (error) {
    throw new KraflaError('ML_E_IO', `${name}: its kept copy cannot be read (${error.message})`, { cause: error });
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Passes chunks on, and keeps them all once the last has come. What goes wrong with keeping is nobody's concern. */
async function* keeping(chunks, key) {
  const cache = await openCache();
  if (!cache) return yield* chunks;
  const { readable, writable } = new TransformStream();
  const writer = writable.getWriter();
  writer.closed.catch(() => {});
  const stored = cache.put(key, new Response(readable)).catch((reason) => writer.abort(reason).catch(() => {}));
  let whole = false;
  try {
    for await (const chunk of chunks) {
      await writer.write(chunk).catch(() => {}); // no faster than it is kept: memory stays small
      yield chunk;
    }
    whole = true;
  } finally {
    await (whole ? writer.close() : writer.abort()).catch(() => {});
    await stored;
  }
}
