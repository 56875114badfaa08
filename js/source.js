// source.js - where a model comes from. A page describes what it was given (describeSource) in a form that a worker can be
// sent; the worker opens it (openPackage) and reads its files, each as chunks from the first byte to the last.
//
//   { kind: 'url', url }   { kind: 'path', path }   { kind: 'blob', blob, name }   { kind: 'blobs', blobs: [{ name, blob }] }
//   { kind: 'pull', id, size }    bytes that stay with the page, which is asked for a chunk at a time

import { kept, keptForOffline } from './cache.js';
import { download, downloadHead, firstBytes, joined } from './download.js';
import { KraflaError } from './errors.js';
import { readManifest } from './manifest.js';
import { fail } from './options.js';
import { nodeModule, isNode } from './platform.js';

const CHUNK = 1 << 20;
const MOST_MANIFEST = 4 << 20;
const MANIFEST = 'model.json';

// ---------------------------------------------------------------- describing

/**
 * @param {any} source what the caller gave
 * @param {(pull: (() => Promise<Uint8Array | undefined>), cancel?: () => void) => number} offer keeps a source of chunks,
 *   and gives its number
 */
export function describeSource(source, offer, name = 'source') {
  if (typeof source === 'string' || source instanceof URL) return describeAddress(String(source));
  if (typeof Blob !== 'undefined' && source instanceof Blob)
    return { kind: 'blob', blob: source, name: source.name ?? '' };
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return offerBytes(source, offer);
  if (typeof source?.getReader === 'function') return offerStream(source, offer);
  if (typeof source?.[Symbol.iterator] === 'function' && [...source].every((file) => file instanceof Blob && file.name))
    return { kind: 'blobs', blobs: [...source].map((file) => ({ name: file.name, blob: file })) };
  return fail(
    name,
    source,
    'must be a URL, a path (in Node), a Blob, the File objects of a package, an ArrayBuffer or a ReadableStream',
  );
}

function describeAddress(address) {
  const base = globalThis.document?.baseURI ?? globalThis.location?.href;
  if (isNode && !/^(https?|blob|data):/.test(address))
    return { kind: 'path', path: address.startsWith('file:') ? nodeModule('url').fileURLToPath(address) : address };
  try {
    return { kind: 'url', url: new URL(address, base).href };
  } catch {
    return fail('source', address, 'is no URL');
  }
}

/** A chunk at a time is copied and sent: there is never a second copy of it all. */
function offerBytes(source, offer) {
  const bytes = ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array(source);
  let at = 0;
  const pull = async () => {
    const chunk = bytes.slice(at, at + CHUNK);
    at += chunk.length;
    return chunk.length > 0 ? chunk : undefined;
  };
  return { kind: 'pull', id: offer(pull), size: bytes.length };
}

function offerStream(stream, offer) {
  const reader = stream.getReader();
  const pull = async () => {
    const { done, value } = await reader.read();
    if (done) return undefined;
    if (!(value instanceof Uint8Array)) fail('chunk of the stream', value, 'must be a Uint8Array');
    return value.slice(); // the stream's owner may keep its own
  };
  return { kind: 'pull', id: offer(pull, () => reader.cancel().catch(() => {})) };
}

// ---------------------------------------------------------------- opening

/**
 * @typedef {object} SourceFile
 * @property {string} name for messages
 * @property {number} [size] that it must have
 * @property {string} [sha256] that it must have
 * @property {(options: object) => AsyncIterable<Uint8Array>} chunks
 * @property {(n: number, options: object) => Promise<{ bytes: Uint8Array, size?: number }>} head its first n bytes
 * @property {() => Promise<void>} [forget] for a kept copy that is not what it must be
 */

/**
 * The files of a package, or of a bare model.
 * @param {object} recipe of describeSource
 * @param {object} [tokenizer] the same for a tokenizer that was given by itself
 * @param {{ pull?: (id: number) => Promise<Uint8Array | undefined>, cache?: boolean, timeout?: number,
 *   retries?: number, signal?: AbortSignal }} io
 * @returns {Promise<{ manifest?: object, model: SourceFile, tokenizer?: SourceFile }>}
 */
export async function openPackage(recipe, tokenizer, io) {
  const found = recipe.kind === 'path' ? await openPath(recipe.path, io) : await openOther(recipe, io);
  if (tokenizer) found.tokenizer = fileOf(tokenizer, io);
  return found;
}

async function openOther(recipe, io) {
  if (recipe.kind === 'blobs') return openBlobs(recipe.blobs, io);
  if (recipe.kind !== 'url') return { model: fileOf(recipe, io) };
  const { pathname } = new URL(recipe.url);
  if (!/(\.json|\/)$/.test(pathname)) return { model: fileOf(recipe, io) };
  const url = pathname.endsWith('/') ? new URL(MANIFEST, recipe.url).href : recipe.url;
  const at = (address) => fileOf({ kind: 'url', url: address }, io);
  return openManifest(at(url), ({ name }) => at(new URL(name, url).href), io.cache);
}

async function openBlobs(blobs, io) {
  const named = (name) => blobs.find((file) => file.name === name);
  const ofKind = (suffix) => blobs.filter(({ name }) => name.endsWith(suffix));
  const file = ({ name, blob }) => fileOf({ kind: 'blob', blob, name }, io);
  const manifest = named(MANIFEST) ?? ofKind('.json')[0];
  if (manifest)
    return openManifest(file(manifest), ({ name }) => {
      if (!named(name)) throw new KraflaError('KRAFLA_E_PACKAGE', `${name} is missing: ${manifest.name} names it`);
      return file(named(name));
    });
  const [models, tokenizers] = [[...ofKind('.mlb'), ...ofKind('.tinyloop')], ofKind('.mlt')];
  if (models.length !== 1 || tokenizers.length > 1)
    throw new KraflaError(
      'KRAFLA_E_PACKAGE',
      `${models.length} .mlb or .tinyloop and ${tokenizers.length} .mlt files: there must be one model, and at most one tokenizer, or a ${MANIFEST}`,
    );
  return { model: file(models[0]), tokenizer: tokenizers[0] && file(tokenizers[0]) };
}

async function openPath(path, io) {
  const fs = nodeModule('fs');
  const { join, dirname } = nodeModule('path');
  const inFolder = (folder) => (name) => join(folder, name);
  const at = (file) => fileOf({ kind: 'path', path: file }, io);
  const isFolder = fs.statSync(path, { throwIfNoEntry: false })?.isDirectory();
  if (!isFolder && !path.endsWith('.json')) return { model: at(path) };
  const beside = inFolder(isFolder ? path : dirname(path));
  const manifest = isFolder ? beside(MANIFEST) : path;
  if (!isFolder || fs.existsSync(manifest)) return openManifest(at(manifest), ({ name }) => at(beside(name)));
  const tokenizer = beside('tokenizer.mlt');
  return { model: at(beside('model.mlb')), tokenizer: fs.existsSync(tokenizer) ? at(tokenizer) : undefined };
}

async function openManifest(file, resolve, cache = false) {
  const bytes = await readAll(cache ? keptForOffline(file) : file, { most: MOST_MANIFEST });
  const manifest = readManifest(new TextDecoder().decode(bytes));
  const { model, tokenizer } = manifest.files;
  const member = ({ size, sha256, ...entry }) => {
    const whole = { ...resolve(entry), size, sha256 };
    return cache && sha256 ? kept(whole) : whole;
  };
  return { manifest, model: member(model), tokenizer: tokenizer && member(tokenizer) };
}

/** A whole file. @param {SourceFile} file */
export async function readAll(file, { most = 2 ** 31, onBytes } = {}) {
  const chunks = [];
  let size = 0;
  for await (const chunk of file.chunks({ size: file.size })) {
    size += chunk.length;
    if (size > most)
      throw new KraflaError('KRAFLA_E_LENGTH', `${file.name}: more than ${most} bytes`, {
        expected: most,
        actual: size,
      });
    chunks.push(chunk.slice()); // the source may use its memory again
    onBytes?.(chunk);
  }
  return joined(chunks);
}

// ---------------------------------------------------------------- reading

function fileOf(recipe, io) {
  if (recipe.kind === 'url') return ofUrl(recipe.url, io);
  if (recipe.kind === 'path') return ofPath(recipe.path);
  if (recipe.kind === 'blob') return ofBlob(recipe.blob, recipe.name || 'blob');
  return ofPull(recipe, io);
}

const ofUrl = (url, io) => ({
  name: url,
  chunks: (options = {}) => download(url, { ...io, ...options }),
  head: (n) => downloadHead(url, n, io),
});

function ofBlob(blob, name) {
  const read = async (from, to) => {
    try {
      return new Uint8Array(await blob.slice(from, to).arrayBuffer());
    } catch (error) {
      throw new KraflaError('ML_E_IO', `${name}: cannot be read (${error.message})`, { cause: error });
    }
  };
  return {
    name,
    knownSize: blob.size,
    async *chunks() {
      for (let at = 0; at < blob.size; at += CHUNK) yield read(at, at + CHUNK);
    },
    head: async (n) => ({ bytes: await read(0, n), size: blob.size }),
  };
}

function ofPath(path) {
  const fs = nodeModule('fs');
  const open = () => {
    try {
      return fs.openSync(path);
    } catch (error) {
      throw new KraflaError('ML_E_IO', `${path}: cannot be opened (${error.code})`, { cause: error });
    }
  };
  const read = (handle, buffer) => {
    try {
      return buffer.subarray(0, fs.readSync(handle, buffer));
    } catch (error) {
      throw new KraflaError('ML_E_IO', `${path}: cannot be read (${error.code})`, { cause: error });
    }
  };
  return {
    name: path,
    knownSize: fs.statSync(path, { throwIfNoEntry: false })?.size,
    /** Each chunk is gone when the next one is asked for. */
    async *chunks() {
      const handle = open();
      const buffer = new Uint8Array(CHUNK);
      try {
        for (let chunk; (chunk = read(handle, buffer)).length > 0;) yield chunk;
      } finally {
        fs.closeSync(handle);
      }
    },
    async head(n) {
      const handle = open();
      try {
        return { bytes: read(handle, new Uint8Array(n)), size: fs.fstatSync(handle).size };
      } finally {
        fs.closeSync(handle);
      }
    },
  };
}

function ofPull({ id, size }, { pull }) {
  async function* chunks() {
    for (let chunk; (chunk = await pull(id));) yield chunk;
  }
  return {
    name: 'the source',
    knownSize: size,
    chunks,
    head: async (n) => ({ bytes: await firstBytes(chunks(), n), size }),
  };
}
