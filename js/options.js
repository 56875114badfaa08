// options.js - what callers may ask for. An option that is unknown, or of the wrong kind, is an error: a wish that is
// silently passed over helps nobody.

import { KraflaError } from './errors.js';

const show = (value) => (typeof value === 'string' ? JSON.stringify(value) : String(value));

export function fail(name, value, rule) {
  throw new KraflaError('ML_E_ARG', `${name} = ${show(value)}: ${rule}`);
}

// Each kind tells whether a value is of it, and in words what it is.
const whole = (low, high = Number.MAX_SAFE_INTEGER) => ({
  test: (value) => Number.isSafeInteger(value) && value >= low && value <= high,
  rule:
    high < Number.MAX_SAFE_INTEGER
      ? `must be a whole number from ${low} to ${high}`
      : `must be a whole number, ${low} or more`,
});
const real = (low, high = Infinity) => ({
  test: (value) => Number.isFinite(value) && value >= low && value <= high,
  rule:
    high < Infinity
      ? `must be a number from ${low} to ${high}`
      : low > -Infinity
        ? `must be a finite number, ${low} or more`
        : 'must be a finite number',
});
const ofType = (type, words) => ({ test: (value) => typeof value === type, rule: `must be ${words}` });
const boolean = ofType('boolean', 'true or false');
const string = ofType('string', 'a string');
const callback = ofType('function', 'a function');
const oneOf = (...values) => ({ test: (value) => values.includes(value), rule: `must be one of ${values.join(', ')}` });
const signal = {
  test: (value) => typeof value?.addEventListener === 'function' && typeof value.aborted === 'boolean',
  rule: 'must be an AbortSignal',
};
const anything = { test: () => true, rule: '' };
const object = { test: (value) => value !== null && typeof value === 'object', rule: 'must be an object' };
const url = { test: (value) => typeof value === 'string' || value instanceof URL, rule: 'must be a URL' };

const seed = {
  test: (value) =>
    typeof value === 'bigint' ? value >= 0n && value < 1n << 64n : Number.isSafeInteger(value) && value >= 0,
  rule: 'must be a whole number, 0 or more, below 2^53, or a bigint below 2^64',
};
const stop = {
  test: (value) => [value].flat().every((text) => typeof text === 'string' && text !== ''),
  rule: 'must be a string that is not empty, or an array of such',
};
const logprobs = whole(0, 20);
const logitBias = {
  test: (value) =>
    value !== null &&
    typeof value === 'object' &&
    Object.entries(value).every(([id, bias]) => /^\d+$/.test(id) && (Number.isFinite(bias) || bias === -Infinity)),
  rule: 'must map token ids to finite numbers, or to -Infinity for never',
};

const SESSION = {
  contextSize: whole(1),
  threads: whole(1),
  kv: oneOf('f32', 'q8'),
  loops: whole(1),
};

export const LOAD = {
  ...SESSION,
  tokenizer: anything,
  build: string,
  worker: boolean,
  wasmUrl: url,
  workerUrl: url,
  cache: boolean,
  timeout: real(1),
  retries: whole(0, 100),
  signal,
  onProgress: callback,
};

export const PROBE = {
  ...SESSION,
  wasmUrl: url,
  cache: boolean,
  timeout: real(1),
  signal,
};

const SAMPLING = {
  temperature: real(0),
  topK: whole(0, 2 ** 31),
  topP: real(0, 1),
  minP: real(0, 1),
  seed,
  repetitionPenalty: real(0),
  presencePenalty: real(-Infinity),
  frequencyPenalty: real(-Infinity),
  logitBias,
};

export const GENERATE = {
  ...SAMPLING,
  maxTokens: whole(0),
  stop,
  special: boolean,
  logprobs,
  templateOptions: object,
  signal,
  onToken: callback,
};

export const CHAT = {
  ...SAMPLING,
  maxTokens: whole(0),
  stop,
  logprobs,
  system: string,
  messages: anything,
  templateOptions: object,
};
export const SEND = {
  ...SAMPLING,
  maxTokens: whole(0),
  stop,
  logprobs,
  templateOptions: object,
  signal,
  onToken: callback,
};
export const TOKENIZE = { special: boolean, bos: boolean, templateOptions: object };
export const DETOKENIZE = { special: boolean };
export const SCORE = { special: boolean, signal };
export const BENCH = { promptTokens: whole(1), tokens: whole(1), repeat: whole(1, 1000), signal };

/** Letters to change, insert or drop to make one word of the other. */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next[j] = Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + (a[i - 1] !== b[j - 1] ? 1 : 0));
    row = next;
  }
  return row[b.length];
}

function nearest(word, names) {
  const close = (name) => distance(word.toLowerCase().replaceAll(/[-_]/g, ''), name.toLowerCase());
  const best = [...names].sort((a, b) => close(a) - close(b))[0];
  return best && close(best) <= 1 + word.length / 4 ? best : undefined;
}

/** The given options without those that are undefined, once they have all been found right. */
export function checkOptions(given = {}, kinds) {
  if (given === null || typeof given !== 'object') fail('options', given, 'must be an object');
  const options = {};
  for (const [name, value] of Object.entries(given)) {
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
    if (!kind) {
      const other = nearest(name, Object.keys(kinds));
      throw new KraflaError('ML_E_ARG', `${name}: no such option${other ? `, is ${other} meant?` : ''}`);
    }
    if (value === undefined) continue;
    if (!kind.test(value)) fail(name, value, kind.rule);
    options[name] = value;
  }
  return options;
}

export function checkText(name, text) {
  if (typeof text !== 'string') fail(name, text, 'must be a string');
  return text;
}

/** Token ids as an Int32Array; that they are in the vocabulary is checked where it is known. */
export function checkIds(name, ids) {
  if (!Array.isArray(ids) && !ArrayBuffer.isView(ids)) fail(name, ids, 'must be an array of token ids');
  for (const id of ids)
    if (!Number.isInteger(id) || id < 0 || id >= 2 ** 31)
      fail(`id in ${name}`, id, 'must be a whole number from 0 to 2147483647');
  return Int32Array.from(ids);
}

export function checkMessages(messages) {
  if (!Array.isArray(messages) || messages.length === 0)
    fail('messages', messages, 'must be an array that is not empty');
  return messages.map((message, index) => {
    const name = `messages[${index}]`;
    if (message === null || typeof message !== 'object') fail(name, message, 'must be an object');
    checkText(`${name}.role`, message.role);
    checkText(`${name}.content`, message.content);
    return { ...message };
  });
}
