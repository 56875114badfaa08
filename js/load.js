// load.js - from a source to an engine that holds the model, in one pass over its bytes:
//
//   model.json, tokenizer --> first bytes of the model --plan--> memory of the right size --> the bytes, as they come
//
// What does not fit is known before the weights are fetched, and no byte is kept outside the engine.

import { buildsToTry, defaultThreads, loadBuild } from './builds.js';
import { newDigest } from './digest.js';
import { joined } from './download.js';
import { KraflaError } from './errors.js';
import { Engine, plan } from './heap.js';
import { breathe, processors } from './platform.js';
import { openPackage, readAll } from './source.js';

const HEAD_BYTES = 256 + 65536; // header and flags of any number of layers
const PROGRESS_MS = 50;
const BREATHE_BYTES = 8 << 20;

/**
 * @param {object} recipe of describeSource
 * @param {{ tokenizer?: object, contextSize?: number, threads?: number, kv?: string, loops?: number, build?: string,
 *   wasmUrl?: string, cache?: boolean, timeout?: number, retries?: number }} options tokenizer: a recipe, too
 * @param {{ pull: Function, onProgress: (event: object) => void, signal?: AbortSignal }} io
 * @returns what a Core is made of
 */
export async function load(recipe, options, { pull, onProgress, signal }) {
  const { cache, timeout, retries } = options;
  const threads = Math.min(options.threads ?? defaultThreads(), processors());
  compileAhead(threads, options);
  const files = await openPackage(recipe, options.tokenizer, { pull, cache, timeout, retries, signal });
  const progress = new Progress(onProgress, files);
  const settings = { contextSize: options.contextSize, threads, kv: options.kv, loops: options.loops };

  progress.phase = 'tokenizer';
  const tokenizerFile = files.tokenizer && (await readTokenizer(files.tokenizer, progress));
  progress.phase = 'model';
  const stream = new ModelStream(files.model, progress, signal, await digestFor(files.model));
  try {
    const head = await stream.head();
    const { engine, build } = await startEngine(head, stream.size, tokenizerFile, settings, options);
    try {
      const parts = await fill(engine, stream, tokenizerFile, settings);
      progress.finish();
      return { engine, build, manifest: files.manifest, ...parts };
    } catch (error) {
      engine.stop();
      throw error;
    }
  } finally {
    await stream.end();
  }
}

/** What a source is and needs, from the beginning of its model's file. */
export async function inspect(recipe, options, { pull, signal }) {
  const { cache, timeout } = options;
  const files = await openPackage(recipe, undefined, { pull, cache, timeout, retries: 0, signal });
  const { bytes, size } = await files.model.head(HEAD_BYTES, {});
  const threads = Math.min(options.threads ?? defaultThreads(), processors());
  const [build] = buildsToTry({ threads });
  const module = await loadBuild(build, options.wasmUrl);
  const totalBytes = files.model.size ?? size;
  const { contextSize, kv, loops } = options;
  const planned = await plan(module, bytes, { totalBytes, contextSize, threads, kv, loops });
  // The tokenizer is not fetched for this: what it takes in memory is about three times its file.
  const tokenizerBytes = files.tokenizer ? 3 * (files.tokenizer.size ?? files.tokenizer.knownSize ?? 0) : 0;
  return { manifest: files.manifest, build, threads, ...planned, memoryBytes: planned.memoryBytes + tokenizerBytes };
}

const digestFor = async ({ sha256 }) => (sha256 ? newDigest() : undefined);

async function readTokenizer(file, progress) {
  const digest = await digestFor(file);
  const bytes = await readAll(file, {
    onBytes: (chunk) => {
      digest?.update(chunk);
      progress.add(chunk.length);
    },
  });
  await checkWhole(file, bytes.length, digest);
  return bytes;
}

/** What came of a file. A kept copy that is another file is not kept any longer. */
async function checkWhole(file, size, digest) {
  try {
    checkFile(file, size, digest);
  } catch (error) {
    await file.forget?.();
    throw error;
  }
}

function checkFile({ name, size, sha256 }, actual, digest) {
  if (size !== undefined && actual !== size)
    throw new KraflaError('KRAFLA_E_LENGTH', `${name}: ${actual} bytes, must be ${size}`, { expected: size, actual });
  if (sha256 && digest.hex() !== sha256)
    throw new KraflaError('KRAFLA_E_INTEGRITY', `${name}: its SHA-256 is not that of model.json`);
}

/** The module comes and is compiled while the files do. What goes wrong with it is told once it is needed. */
function compileAhead(threads, { build, wasmUrl }) {
  try {
    loadBuild(buildsToTry({ build, threads })[0], wasmUrl);
  } catch {
    // startEngine will find the same
  }
}

/** Memory of the right size, and the best build that runs on this machine. */
async function startEngine(head, totalBytes, tokenizer, settings, { build: asked, wasmUrl }) {
  let last;
  for (const build of buildsToTry({ build: asked, threads: settings.threads })) {
    try {
      const module = await loadBuild(build, wasmUrl);
      const { memoryBytes } = await plan(module, head, { totalBytes, tokenizer, ...settings });
      return { engine: await Engine.begin(module, { bytes: memoryBytes, threads: settings.threads }), build };
    } catch (error) {
      if (error.code !== 'KRAFLA_E_BUILD') throw error;
      last = error;
    }
  }
  throw last;
}

async function fill(engine, stream, tokenizerFile, settings) {
  const tokenizer = tokenizerFile && engine.openTokenizer(tokenizerFile);
  const loading = engine.beginModel({ totalBytes: stream.size });
  try {
    for await (const chunk of stream.chunks()) loading.push(chunk);
    const model = loading.finish();
    tokenizer?.checkModel(model);
    await engine.ready;
    return { model, tokenizer, session: model.session(settings) };
  } finally {
    loading.free();
  }
}

/** The model's file: its first bytes are looked at before they are used. */
class ModelStream {
  #file;
  #progress;
  #signal;
  #iterator;
  #first;
  #digest;
  #loaded = 0;
  /** Bytes that the file has, 0 if nobody knows. */
  size;

  constructor(file, progress, signal, digest) {
    this.#file = file;
    this.#progress = progress;
    this.#signal = signal;
    this.#digest = digest;
    this.size = file.size ?? file.knownSize ?? 0;
    if (file.size !== undefined && file.knownSize !== undefined && file.knownSize !== file.size)
      checkFile(file, file.knownSize);
    const onSize = (size) => this.#progress.setModelBytes((this.size = size));
    this.#iterator = file.chunks({ size: file.size, onSize })[Symbol.asyncIterator]();
  }

  async #next() {
    this.#signal?.throwIfAborted();
    const { done, value } = await this.#iterator.next();
    if (done) return undefined;
    this.#digest?.update(value);
    this.#loaded += value.length;
    this.#progress.add(value.length);
    return value;
  }

  async head() {
    const chunks = [];
    for (let chunk; this.#loaded < HEAD_BYTES && (chunk = await this.#next());) chunks.push(chunk.slice());
    return (this.#first = joined(chunks));
  }

  /** All of it, once. Throws at the end if it is not the file that it should have been. */
  async *chunks() {
    yield this.#first;
    let busy = 0;
    for (let chunk; (chunk = await this.#next()); busy += chunk.length) {
      yield chunk;
      if (busy < BREATHE_BYTES) continue;
      await breathe();
      busy = 0;
    }
    await checkWhole(this.#file, this.#loaded, this.#digest);
  }

  async end() {
    await this.#iterator.return?.();
  }
}

/** Tells how far it is: bytes of all files together, never fewer than before. */
class Progress {
  phase = 'package';
  #report;
  #loaded = 0;
  #tokenizerBytes;
  #modelBytes;
  #last = -Infinity;

  constructor(report, { model, tokenizer }) {
    this.#report = report;
    this.#tokenizerBytes = tokenizer ? (tokenizer.size ?? tokenizer.knownSize) : 0;
    this.#modelBytes = model.size ?? model.knownSize;
    this.#tell();
  }

  /** The size of the tokenizer may be known only by what came of it. */
  setModelBytes(size) {
    this.#tokenizerBytes ??= this.#loaded;
    this.#modelBytes ??= size;
  }

  add(bytes) {
    this.#loaded += bytes;
    if (performance.now() - this.#last >= PROGRESS_MS) this.#tell();
  }

  finish() {
    this.phase = 'ready';
    this.#tokenizerBytes = 0;
    this.#modelBytes = this.#loaded;
    this.#tell();
  }

  #tell() {
    this.#last = performance.now();
    const total = this.#tokenizerBytes + this.#modelBytes;
    this.#report({ phase: this.phase, loaded: this.#loaded, total: total >= this.#loaded ? total : undefined });
  }
}
