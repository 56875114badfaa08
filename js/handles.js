// handles.js - objects that live in the engine's memory: models, sessions, tokenizers, decoders, samplers.
//
// Each is an address that only this file sees. Calls are synchronous; a failure of C is thrown as a KraflaError, and
// what existed before it is still usable. What is not freed stays until the engine goes.

import { KraflaError } from './errors.js';

/** ml_kv_type of a name: how keys and values of earlier positions are kept. */
function kvType(name = 'f32') {
  const type = ['f32', 'q8'].indexOf(name);
  if (type < 0) throw new KraflaError('ML_E_ARG', `kv = ${name}: must be f32 or q8`);
  return type;
}

export class Model {
  #handle;

  constructor(engine, handle) {
    this.engine = engine;
    this.#handle = handle;
  }

  info() {
    return this.engine.facts(this.engine.exports.ml_wasm_model_facts(this.#handle));
  }

  sessionBytes({ contextSize = 0, batchSize = 0, threads = 1, loops = 0, kv } = {}) {
    const { ml_wasm_session_memory } = this.engine.exports;
    return ml_wasm_session_memory(this.#handle, contextSize, batchSize, threads, loops, kvType(kv));
  }

  /** `loops`: of a looped model, how often its shared layer is run at most; 0: as the model says. */
  session({ contextSize = 0, batchSize = 0, threads = 1, loops = 0, kv, kernels, trace = false } = {}) {
    const { engine } = this;
    const type = kvType(kv);
    const create = (isa) =>
      engine.exports.ml_wasm_session_new(
        this.#handle,
        contextSize,
        batchSize,
        threads,
        isa,
        trace ? 1 : 0,
        loops,
        type,
      );
    const handle = kernels ? engine.withCopy(new TextEncoder().encode(`${kernels}\0`), create) : create(0);
    return new Session(engine, engine.checkHandle(handle), this.info().vocabulary);
  }

  /** Lends its address to another handle. */
  use(call) {
    return call(this.#handle);
  }

  /** No session of it may be left. */
  free() {
    this.engine.exports.ml_model_free(this.#handle);
    this.#handle = 0;
  }
}

export class Session {
  #handle;

  constructor(engine, handle, vocabulary) {
    this.engine = engine;
    this.#handle = handle;
    this.vocabulary = vocabulary;
  }

  #call(name, ids) {
    const { exports } = this.engine;
    const array = Int32Array.from(ids);
    this.engine.checkStatus(
      this.engine.withCopy(array, (address) => exports[name](this.#handle, address, array.length)),
    );
  }

  /** Runs a looped model's shared layer this often from now on. A change forgets all ids. */
  setLoops(loops) {
    this.engine.checkStatus(this.engine.exports.ml_wasm_session_set_loops(this.#handle, loops));
  }

  /** Appends ids; afterwards there are logits of the last one. */
  evaluate(ids) {
    this.#call('ml_wasm_session_eval', ids);
  }

  /**
   * The same with the logits of every position.
   * @param {Iterable<number>} ids
   * @param {(position: number, logits: Float32Array) => boolean | void} [onLogits] false ends the call; the logits are
   *   valid until it returns
   */
  score(ids, onLogits) {
    const { engine, vocabulary } = this;
    const receive = (position, address) => onLogits(position, engine.view(address, vocabulary, Float32Array)) !== false;
    engine.onPosition = onLogits && receive;
    try {
      this.#call('ml_wasm_session_score', ids);
    } finally {
      engine.onPosition = undefined;
    }
  }

  /** Valid until the next call; undefined while there is no token. */
  logits() {
    const address = this.engine.exports.ml_session_logits(this.#handle);
    return address ? this.engine.view(address, this.vocabulary, Float32Array) : undefined;
  }

  /** Keeps the first n tokens, or none: see ml_session_truncate in src/ml.h. Returns how many are left. */
  truncate(n) {
    return this.engine.exports.ml_session_truncate(this.#handle, n);
  }

  get position() {
    return this.engine.exports.ml_session_n_past(this.#handle);
  }

  get contextSize() {
    return this.engine.exports.ml_session_n_ctx(this.#handle);
  }

  get threads() {
    return this.engine.exports.ml_session_n_threads(this.#handle);
  }

  get kernels() {
    return this.engine.text(this.engine.exports.ml_session_isa(this.#handle));
  }

  free() {
    this.engine.exports.ml_session_free(this.#handle);
    this.#handle = 0;
  }
}

export class Tokenizer {
  #handle;

  constructor(engine, handle) {
    this.engine = engine;
    this.#handle = handle;
  }

  info() {
    return this.engine.facts(this.engine.exports.ml_wasm_tokenizer_facts(this.#handle));
  }

  /** Throws if it has more tokens than the model. */
  checkModel(model) {
    model.use((handle) =>
      this.engine.checkStatus(this.engine.exports.ml_wasm_tokenizer_check_model(this.#handle, handle)),
    );
  }

  /**
   * @param {string} text
   * @param {{ special?: boolean, bos?: boolean, plain?: [number, number][] }} [options] special: added tokens spelled in
   *   the text become their ids; bos: put it in front if the tokenizer does; plain: parts of the text [from, to), counted
   *   as JavaScript counts, that added tokens must not touch
   */
  encode(text, { special = false, bos = true, plain = [] } = {}) {
    const { engine } = this;
    const bytes = new TextEncoder().encode(text);
    const spans = Uint32Array.from(byteSpans(text, plain));
    const flags = (special ? ENCODE_SPECIAL : 0) | (bos ? 0 : ENCODE_NO_BOS);
    const into = (ids, capacity) =>
      engine.withCopy(bytes, (at) =>
        engine.withCopy(spans, (spansAt) =>
          engine.exports.ml_wasm_tokenizer_encode(
            ...[this.#handle, at, bytes.length, spansAt, spans.length / 2, flags, ids, capacity],
          ),
        ),
      );
    for (let capacity = bytes.length + 16; ;) {
      const room = new Int32Array(capacity);
      const { n, ids } = engine.withCopy(room, (address) => {
        const count = into(address, capacity);
        if (count < 0) throw engine.failure();
        return { n: count, ids: engine.view(address, Math.min(count, capacity), Int32Array).slice() };
      });
      if (n <= capacity) return ids;
      capacity = n;
    }
  }

  /** Spellings of the tokens that control: added ones that no plain text gives. */
  *controls() {
    for (let id = -1; (id = this.engine.exports.ml_wasm_tokenizer_next_control(this.#handle, id)) >= 0;)
      yield lastText(this.engine);
  }

  decoder() {
    return new Decoder(this.engine, this.engine.checkHandle(this.engine.exports.ml_wasm_decoder_new(this.#handle)));
  }

  /** @param {Iterable<number>} ids */
  decode(ids, { special = false } = {}) {
    const decoder = this.decoder();
    try {
      let text = '';
      for (const id of ids) text += decoder.push(id, special);
      return text + decoder.finish();
    } finally {
      decoder.free();
    }
  }

  /** No decoder of it may be left. */
  free() {
    this.engine.exports.ml_tokenizer_free(this.#handle);
    this.#handle = 0;
  }
}

const ENCODE_SPECIAL = 1;
const ENCODE_NO_BOS = 2;

/** Borders of spans in UTF-16 units, rising, as borders in bytes of UTF-8. */
function* byteSpans(text, spans) {
  let units = 0;
  let bytes = 0;
  for (const border of spans.flat()) {
    bytes += new TextEncoder().encode(text.slice(units, border)).length;
    units = border;
    yield bytes;
  }
}

function lastText(engine) {
  const size = engine.exports.ml_wasm_text_size();
  if (size === 0) return '';
  const bytes = engine.view(engine.exports.ml_wasm_text(), size).slice(); // shared memory cannot be decoded in place
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}

export class Decoder {
  #handle;

  constructor(engine, handle) {
    this.engine = engine;
    this.#handle = handle;
  }

  /** Text that is certain by now, whole characters. */
  push(id, special = false) {
    this.engine.checkStatus(this.engine.exports.ml_wasm_decoder_push(this.#handle, id, special ? 1 : 0));
    return lastText(this.engine);
  }

  /** What was held back; afterwards it begins anew. */
  finish() {
    this.engine.exports.ml_wasm_decoder_finish(this.#handle);
    return lastText(this.engine);
  }

  free() {
    this.engine.exports.ml_decoder_free(this.#handle);
    this.#handle = 0;
  }
}

export class Sampler {
  #handle;
  #biases;

  /**
   * @param {import('./heap.js').Engine} engine
   * @param {number} vocabulary
   * @param {object} options those of ml_sampler_options in src/ml.h, in camel case; seed: a bigint; biases: pairs of a
   *   token id and what is added to its logit, before penalties
   */
  constructor(engine, vocabulary, options) {
    const { temperature = 0, topK = 0, topP = 0, minP = 0, seed = 0n, biases = [] } = options;
    const { repetitionPenalty = 0, presencePenalty = 0, frequencyPenalty = 0 } = options;
    const penalties = [repetitionPenalty, presencePenalty, frequencyPenalty];
    const halves = [Number(BigInt.asUintN(32, seed)), Number(BigInt.asUintN(32, seed >> 32n))];
    this.engine = engine;
    this.#biases = biases;
    this.#handle = engine.checkHandle(
      engine.exports.ml_wasm_sampler_new(vocabulary, temperature, topK, topP, minP, ...penalties, ...halves),
    );
  }

  /** Tells it of a token in the timeline, for the penalties. */
  accept(id) {
    this.engine.checkStatus(this.engine.exports.ml_wasm_sampler_accept(this.#handle, id));
  }

  /** @param {Float32Array} logits of the session, left as they are */
  sample(logits) {
    const id = this.#biases.length ? this.#sampleBiased(logits) : this.#sampleAt(logits.byteOffset);
    if (id < 0) throw this.engine.failure();
    return id;
  }

  #sampleAt(address) {
    return this.engine.exports.ml_wasm_sampler_sample(this.#handle, address);
  }

  #sampleBiased(logits) {
    const biased = logits.slice();
    for (const [id, bias] of this.#biases) biased[id] += bias;
    return this.engine.withCopy(biased, (address) => this.#sampleAt(address));
  }

  free() {
    this.engine.exports.ml_sampler_free(this.#handle);
    this.#handle = 0;
  }
}
