// heap.js - the only file that touches wasm memory: an engine, and handles for what lives in it.
//
//     const engine = await Engine.start(module, { bytes: (await plan(module, head)).memoryBytes, threads: 2 });
//     const model = engine.loadModel(chunks, { totalBytes });
//     const session = model.session({ contextSize: 1024, threads: 2 });
//     session.evaluate([1, 2, 3]);
//     session.logits();                 // Float32Array, valid until the next call
//     session.free(); model.free(); engine.stop();
//
// All calls are synchronous and take as long as the work takes: use them in a worker, never in a page's own thread.

import { KraflaError } from './errors.js';
import { Model, Tokenizer } from './handles.js';
import { nodeModule } from './platform.js';

const PAGE = 65536;
const SMALLEST = 16 * PAGE; // what the modules ask for at least
const LARGEST = 65536 * PAGE;
const CHUNK = 1 << 20; // of a model's bytes, on their way in
const THREAD_STACK = 2 * PAGE;
const THREAD_START_MS = 10000;
const EXTRA = 2 * CHUNK; // loader, ids, and what alignment costs
const TEXT_ROOM = 16 * CHUNK; // for texts on their way to ids; costs nothing until it is used
const SAMPLER_BYTES = 16; // for each token of the vocabulary, and as much again for the copy that is biased

/**
 * What C calls.
 * @param {WebAssembly.Memory} memory
 * @param {{
 *   onStage?: (stage: string, layer: number, position: number, n: number, hash: bigint) => void,
 *   onPosition?: (position: number, logits: number) => boolean,
 * }} [receivers] of traces; of the logits of each position that is scored, which says whether to go on
 */
export function importsFor(memory, { onStage, onPosition } = {}) {
  const bytes = new Uint8Array(memory.buffer);
  const stage = (name, layer, position, n, hash) =>
    onStage?.(textAt(bytes, name), layer, position, n, BigInt.asUintN(64, hash));
  const position = (index, logits) => (onPosition && !onPosition(index, logits) ? 0 : 1);
  return { env: { memory }, krafla: { stage, position } };
}

/** Text up to its NUL. A copy: shared memory cannot be decoded in place. */
function textAt(bytes, address) {
  const start = address >>> 0;
  return new TextDecoder().decode(bytes.slice(start, bytes.indexOf(0, start)));
}

const wantsSharedMemory = (module) => WebAssembly.Module.exports(module).some(({ name }) => name === 'ml_thread_lend');

function makeMemory(module, bytes) {
  const pages = Math.ceil(Math.max(bytes, SMALLEST) / PAGE);
  if (pages * PAGE > LARGEST)
    throw new KraflaError('ML_E_NOMEM', `memory = ${bytes}: bytes needed, wasm has at most ${LARGEST}`);
  try {
    return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: wantsSharedMemory(module) });
  } catch (error) {
    throw new KraflaError('ML_E_NOMEM', `memory = ${bytes}: bytes needed, the browser refuses: ${error.message}`);
  }
}

/**
 * What a model is and the memory that it needs, from the first bytes of its file (256 and a byte for each layer).
 * @param {WebAssembly.Module} module
 * @param {Uint8Array} head
 * @param {{ totalBytes?: number, tokenizer?: Uint8Array, contextSize?: number, batchSize?: number, threads?: number,
 *   kv?: 'f32' | 'q8', loops?: number }} [options] tokenizer: its file, where there is one
 */
export async function plan(module, head, { totalBytes = 0, tokenizer, ...options } = {}) {
  const fileBytes = tokenizer?.byteLength ?? 0;
  const engine = await Engine.start(module, { bytes: fileBytes + head.length + SMALLEST });
  const model = engine.planModel(head, totalBytes);
  const sessionBytes = model.sessionBytes(options);
  if (!sessionBytes) model.session(options); // which fails, and says why
  const info = model.info();
  model.free();
  const tokenizerBytes = tokenizer ? engine.tokenizerBytes(tokenizer) + fileBytes : 0;
  const threadBytes = (options.threads ?? 1) * (THREAD_STACK + PAGE);
  const parts = [engine.staticBytes, info.weightBytes, sessionBytes, tokenizerBytes, threadBytes];
  const room = EXTRA + CHUNK + (tokenizer ? TEXT_ROOM : 0) + 2 * SAMPLER_BYTES * info.vocabulary;
  return { ...info, sessionBytes, memoryBytes: parts.reduce((sum, bytes) => sum + bytes, room) };
}

export class Engine {
  #memory;
  #workers = [];
  #stopped = false;
  /** Resolves when its threads wait for work: sessions that begin before have fewer. */
  ready = Promise.resolve();
  /** For as long as a call runs that gives out logits: their receiver (see Session.score). */
  onPosition;

  /**
   * @param {WebAssembly.Module} module
   * @param {{ bytes?: number, threads?: number, onStage?: Function }} [options] memory to have; threads that sessions
   *   may use; receiver of traces
   */
  static async start(module, options) {
    const engine = await Engine.begin(module, options);
    await engine.ready;
    return engine;
  }

  /** The same, but its threads are still on their way: a model can be loaded meanwhile. */
  static async begin(module, { bytes = 0, threads = 1, onStage } = {}) {
    const engine = new Engine();
    engine.#memory = makeMemory(module, bytes);
    const onPosition = (position, logits) => engine.onPosition?.(position, logits) ?? true;
    const instance = await WebAssembly.instantiate(module, importsFor(engine.#memory, { onStage, onPosition }));
    engine.exports = instance.exports;
    engine.exports.__wasm_call_ctors();
    if (!engine.exports.ml_isa_name(0))
      throw new KraflaError('KRAFLA_E_BUILD', "this machine's relaxed SIMD is not what the build relies on");
    if (threads > 1 && wantsSharedMemory(module)) engine.ready = engine.#lendThreads(module, threads - 1);
    engine.ready.catch(() => {}); // whoever waits for it is told
    return engine;
  }

  /** Ends its threads. The engine is of no use afterwards. */
  stop() {
    this.#stopped = true;
    for (const worker of this.#workers) worker.terminate();
    this.#workers = [];
  }

  get staticBytes() {
    return this.exports.ml_wasm_static_bytes();
  }

  get memoryBytes() {
    return this.#memory.buffer.byteLength;
  }

  /** Names of the kernels that can run, best first. */
  get kernels() {
    const names = [];
    for (let i = 0, address; (address = this.exports.ml_isa_name(i)); i++) names.push(this.text(address));
    return names;
  }

  // ---------------------------------------------------------------- memory

  /** A view of memory that C owns, valid until it is freed. */
  view(address, size, Type = Uint8Array) {
    return new Type(this.#memory.buffer, address >>> 0, size);
  }

  text(address) {
    return textAt(new Uint8Array(this.#memory.buffer), address);
  }

  /** Calls `use` with the address of a copy of `array` (a typed array), which is gone afterwards. */
  withCopy(array, use) {
    const address = this.exports.ml_wasm_allocate(Math.max(array.byteLength, 1));
    if (!address) throw new KraflaError('ML_E_NOMEM', `memory = ${array.byteLength}: bytes needed, the heap is full`);
    try {
      this.view(address, array.length, array.constructor).set(array);
      return use(address);
    } finally {
      this.exports.ml_wasm_release(address);
    }
  }

  // ---------------------------------------------------------------- failures

  /** The last failure of C. */
  failure() {
    const { ml_status_name, ml_wasm_error_status, ml_wasm_error_message, ml_wasm_error_offset } = this.exports;
    const offset = ml_wasm_error_offset();
    const code = this.text(ml_status_name(ml_wasm_error_status()));
    return new KraflaError(code, this.text(ml_wasm_error_message()), offset < 0 ? {} : { offset });
  }

  checkStatus(status) {
    if (status !== 0) throw this.failure();
  }

  checkHandle(handle) {
    if (!handle) throw this.failure();
    return handle;
  }

  /** Lines of "name value" as an object; what looks like a number is one. */
  facts(address) {
    const pairs = this.text(address)
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' '));
    return Object.fromEntries(pairs.map(([name, value]) => [name, /^\d+$/.test(value) ? Number(value) : value]));
  }

  // ---------------------------------------------------------------- models

  /** A model without weights, from the beginning of its file. */
  planModel(head, totalBytes = 0) {
    const read = (address) => this.exports.ml_wasm_model_plan(address, head.length, totalBytes);
    return new Model(this, this.checkHandle(this.withCopy(head, read)));
  }

  /** @param {Iterable<Uint8Array>} chunks of the file, of any size */
  loadModel(chunks, options) {
    const loading = this.beginModel(options);
    try {
      for (const chunk of chunks) loading.push(chunk);
      return loading.finish();
    } finally {
      loading.free();
    }
  }

  /** For chunks that take their time: push, push ..., finish, and in any case free. */
  beginModel({ totalBytes = 0, memoryLimit = 0 } = {}) {
    const { exports } = this;
    const loader = this.checkHandle(exports.ml_wasm_loader_new(totalBytes, memoryLimit));
    return {
      push: (bytes) => {
        for (let at = 0; at < bytes.length; at += CHUNK) {
          const piece = bytes.subarray(at, at + CHUNK);
          this.checkStatus(
            this.withCopy(piece, (address) => exports.ml_wasm_loader_push(loader, address, piece.length)),
          );
        }
      },
      finish: () => new Model(this, this.checkHandle(exports.ml_wasm_loader_finish(loader))),
      free: () => exports.ml_loader_free(loader),
    };
  }

  // ---------------------------------------------------------------- tokenizers

  /** @param {Uint8Array} file */
  openTokenizer(file) {
    const open = (address) => this.exports.ml_wasm_tokenizer_open(address, file.length);
    return new Tokenizer(this, this.checkHandle(this.withCopy(file, open)));
  }

  /** Memory that openTokenizer will take, 0 for a file that it will refuse. */
  tokenizerBytes(file) {
    return this.withCopy(file, (address) => this.exports.ml_wasm_tokenizer_memory(address, file.length));
  }

  // ---------------------------------------------------------------- threads

  /** Starts workers and waits until they wait for work. Those that fail, or are late, are done without. */
  async #lendThreads(module, n) {
    if (maySleep(this.#memory)) this.exports.ml_thread_may_sleep();
    const start = threadStarter();
    const replies = [];
    for (let i = 0; i < n; i++) {
      const stack = this.exports.ml_wasm_allocate(THREAD_STACK + 16);
      if (!stack) break;
      const task = { module, memory: this.#memory, stack: (stack + 15) & ~15, stackBytes: THREAD_STACK };
      replies.push(start(task, (worker) => this.#workers.push(worker)));
    }
    const patience = new Promise((resolve) => setTimeout(resolve, THREAD_START_MS).unref?.());
    const outcomes = await Promise.race([Promise.all(replies), patience]);
    const ready = outcomes?.filter((outcome) => outcome === 'ready').length ?? 0;
    const deadline = Date.now() + THREAD_START_MS;
    while (!this.#stopped && this.exports.ml_thread_lent() < ready && Date.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

/** Whether this very thread may wait: a page's own may not. */
function maySleep({ buffer }) {
  try {
    return Atomics.wait(new Int32Array(buffer), 0, 0, 0) !== 'ok'; // no time at all
  } catch {
    return false;
  }
}

/** A function that starts a thread.js with a task and resolves to its first message, or to what went wrong. */
function threadStarter() {
  if (typeof Worker !== 'undefined')
    return (task, onWorker) =>
      new Promise((resolve) => {
        const worker = new Worker(new URL('./thread.js', import.meta.url), { type: 'module' });
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = (event) => resolve(event.message ?? 'error');
        worker.postMessage(task);
        onWorker(worker);
      }).catch(String);
  const { Worker: NodeWorker } = nodeModule('worker_threads');
  return (task, onWorker) =>
    new Promise((resolve) => {
      const worker = new NodeWorker(new URL('./thread.js', import.meta.url), { workerData: task, execArgv: [] });
      worker.once('message', (message) => {
        worker.unref(); // from now on it is asleep or busy for another: a program that is done ends
        resolve(message);
      });
      worker.once('error', (error) => resolve(String(error)));
      onWorker(worker);
    }).catch(String);
}
