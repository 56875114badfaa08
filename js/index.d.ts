/** Runs language models on the CPU, in the browser and in Node. See docs/API.md. */

/** Every failure that can be told apart by its code. What the codes mean: docs/API.md. */
export class KraflaError extends Error {
  readonly name: 'KraflaError';
  readonly code: ErrorCode;
  /** Byte offset in the model's file. */
  readonly offset?: number;
  readonly url?: string;
  /** Of an HTTP answer. */
  readonly status?: number;
  readonly expected?: number;
  readonly actual?: number;
}

export type ErrorCode =
  | 'ML_E_IO'
  | 'ML_E_FORMAT'
  | 'ML_E_SHAPE'
  | 'ML_E_NOMEM'
  | 'ML_E_ARG'
  | 'ML_E_CONTEXT'
  | 'ML_E_NUMERIC'
  | 'ML_E_STATE'
  | 'KRAFLA_E_BUILD'
  | 'KRAFLA_E_CLOSED'
  | 'KRAFLA_E_WORKER'
  | 'KRAFLA_E_PACKAGE'
  | 'KRAFLA_E_TEMPLATE'
  | 'KRAFLA_E_NETWORK'
  | 'KRAFLA_E_HTTP'
  | 'KRAFLA_E_CONTENT'
  | 'KRAFLA_E_LENGTH'
  | 'KRAFLA_E_CUT'
  | 'KRAFLA_E_STALLED'
  | 'KRAFLA_E_INTEGRITY';

export type Build = 'simd128' | 'simd128-threads' | 'relaxed' | 'relaxed-threads';

/**
 * A URL of a `model.json`, of its folder (with a slash at the end) or of a bare `.mlb`; in Node a path, too; a Blob or
 * File; the File objects of a package; bytes; a stream of bytes.
 */
export type Source = string | URL | Blob | Iterable<File> | ArrayBuffer | ArrayBufferView | ReadableStream<Uint8Array>;

export interface Progress {
  phase: 'package' | 'tokenizer' | 'model' | 'ready';
  /** Bytes of all files together; never falls. */
  loaded: number;
  /** As far as it is known. */
  total?: number;
}

export interface SessionOptions {
  /** Tokens to keep room for. Default: what the model allows, 4096 at most. */
  contextSize?: number;
  /** Default: most of the machine's, 8 at most; 1 where a page is not cross-origin isolated. */
  threads?: number;
  /** How keys and values of earlier tokens are kept: `q8` takes 28 % of the memory, and changes results a little. */
  kv?: 'f32' | 'q8';
  /** How often the shared layer of a TinyLoop model is run. Default: as its file says. Other models have none. */
  loops?: number;
}

export interface LoadOptions extends SessionOptions {
  /** For a bare model; a package names its own. */
  tokenizer?: Source;
  /** Default: the best that runs here. */
  build?: Build;
  /** False: in this very thread, which is then busy for as long as it works. Default true. */
  worker?: boolean;
  /** Folder of the `.wasm` files, with a slash at the end. Default: beside the code. */
  wasmUrl?: string | URL;
  /** Default: `worker.js` beside the code. */
  workerUrl?: string | URL;
  /** Keep what a package's files were fetched as, so that the next page view fetches nothing and needs no network.
   * Only pages of secure origins can (Cache Storage, named `krafla-web`); elsewhere it has no effect. Default false. */
  cache?: boolean;
  /** Milliseconds without a byte after which a download counts as stalled. Default 30000. */
  timeout?: number;
  /** How often in a row a download may be taken up again without getting on. Default 3. */
  retries?: number;
  signal?: AbortSignal;
  onProgress?: (event: Progress) => void;
}

export interface ProbeOptions extends SessionOptions {
  wasmUrl?: string | URL;
  cache?: boolean;
  timeout?: number;
  signal?: AbortSignal;
}

/** What a model is. */
export interface ModelFacts {
  name?: string;
  architecture?: string;
  license?: string;
  /** Where it comes from. */
  source?: string;
  weightType: string;
  parameters: number;
  vocabulary: number;
  maxContext: number;
  width: number;
  layers: number;
  heads: number;
  keyValueHeads: number;
  headSize: number;
  feedForwardWidth: number;
  slidingWindow: number;
  /** By default, of a TinyLoop model; else 0. */
  loops: number;
  fileBytes: number;
  weightBytes: number;
  /** That the whole engine takes, or would take. */
  memoryBytes: number;
  build: Build;
  threads: number;
}

export interface ModelInfo extends ModelFacts {
  kernels: string;
  contextSize: number;
  hasTokenizer: boolean;
  hasChatTemplate: boolean;
  /** What the package advises; not applied by itself. */
  sampling?: SamplingOptions;
  stopTokens: number[];
}

export interface ProbeReport extends ModelFacts {
  downloadBytes: number;
  sessionBytes: number;
  /** Whether this device gives that much memory to a page. */
  fits: boolean;
}

export interface SamplingOptions {
  /** 0 (default): always the likeliest token. */
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  /** Below 2^53, or a bigint below 2^64. Default: another one each time, which the result tells. */
  seed?: number | bigint;
  repetitionPenalty?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  /** Added to the logits of these ids, before penalties; -Infinity: never. */
  logitBias?: Record<number, number>;
  /** Default: as many as the context has room for. */
  maxTokens?: number;
  /** Texts that end the answer, and are not part of it. */
  stop?: string | string[];
  /** Tell the logprob of each token, and those of so many of the likeliest: 0 to 20. */
  logprobs?: number;
}

export interface TokenLogprobs {
  id: number;
  /** Natural logarithm of the probability that the model gave it, before temperature, penalties and biases. */
  logprob: number;
  /** The likeliest ones, likeliest first. */
  top: { id: number; logprob: number }[];
}

export interface Token {
  id: number;
  /** Text that it made certain: maybe none, always whole characters. */
  text: string;
  index: number;
  logprobs?: TokenLogprobs;
}

export interface AnswerOptions extends SamplingOptions {
  /** Further variables of the chat template. */
  templateOptions?: Record<string, unknown>;
  signal?: AbortSignal;
  /** Called for each token before the next one is computed; without it the tokens of a few milliseconds may come together. */
  onToken?: (token: Token) => void;
}

export interface GenerateOptions extends AnswerOptions {
  /** Control tokens spelled in a text prompt become tokens. Default false. */
  special?: boolean;
}

export interface ChatOptions extends SamplingOptions {
  system?: string;
  /** To begin with. */
  messages?: Message[];
  templateOptions?: Record<string, unknown>;
}

export interface Message {
  role: 'system' | 'user' | 'assistant' | (string & {});
  content: string;
}

export interface Result {
  text: string;
  tokens: number[];
  /** Of each token, if they were asked for. */
  logprobs?: TokenLogprobs[];
  /** An end token or a stop text; maxTokens or the context; stop() or a loop that was left. */
  finishReason: 'stop' | 'length' | 'stopped';
  seed: number | bigint;
  usage: { promptTokens: number; completionTokens: number; totalTokens: number; cachedTokens: number };
  timings: { promptMs: number; decodeMs: number; promptTokensPerSecond: number; tokensPerSecond: number };
}

/** Await it for the whole, or iterate it for the pieces. */
export interface Answer extends PromiseLike<Result>, AsyncIterable<string> {
  /** So far. */
  readonly text: string;
  readonly tokens: number[];
  /** How many the prompt has; 0 until it has been looked at. */
  readonly promptTokens: number;
  /** Ends it with what there is. */
  stop(): void;
  catch<T = never>(onRejected?: ((reason: unknown) => T | PromiseLike<T>) | null): Promise<Result | T>;
  finally(onSettled?: (() => void) | null): Promise<Result>;
}

export interface Chat {
  /** A copy. */
  readonly history: Message[];
  send(text: string, options?: AnswerOptions): Answer;
  /** Another answer to the last message. */
  regenerate(options?: AnswerOptions): Answer;
  fork(): Chat;
}

export interface Score {
  perplexity: number;
  /** Mean of -ln p. */
  meanNll: number;
  scoredTokens: number;
  tokens: number;
}

export interface Bench {
  promptTokensPerSecond: number;
  tokensPerSecond: number;
  /** With sampling and what belongs to it. */
  generatedTokensPerSecond: number;
  /** As the caller of generate() gets them, with all that messages take. */
  receivedTokensPerSecond: number;
  /** Weights read per second while generating. */
  gigabytesPerSecond: number;
  promptTokens: number;
  tokens: number;
  repeat: number;
  threads: number;
  kernels: string;
}

export interface Model extends AsyncDisposable {
  readonly info: ModelInfo;
  /** Goes on with a text, messages (by the model's template) or token ids. */
  generate(prompt: string | readonly Message[] | ArrayLike<number>, options?: GenerateOptions): Answer;
  chat(options?: ChatOptions): Chat;
  /** `special`: control tokens spelled in the text become tokens; `bos`: put the beginning in front (default true). */
  tokenize(
    prompt: string | readonly Message[],
    options?: { special?: boolean; bos?: boolean; templateOptions?: Record<string, unknown> },
  ): Promise<Int32Array>;
  detokenize(ids: ArrayLike<number>, options?: { special?: boolean }): Promise<string>;
  score(text: string | ArrayLike<number>, options?: { special?: boolean; signal?: AbortSignal }): Promise<Score>;
  bench(options?: { promptTokens?: number; tokens?: number; repeat?: number; signal?: AbortSignal }): Promise<Bench>;
  /** Everything that waits fails with KRAFLA_E_CLOSED, and the memory is given back. */
  close(): Promise<void>;
}

/** Loads a model, into a worker unless told otherwise. */
export function loadModel(source: Source, options?: LoadOptions): Promise<Model>;

/** What a model is and needs, from the first bytes of its file. */
export function probe(source: Source, options?: ProbeOptions): Promise<ProbeReport>;
