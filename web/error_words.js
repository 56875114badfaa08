// error_words.js - what went wrong, in words for people who did not write the page, and what they can do.

import { megabytes } from './load_progress.js';

const WORDS = {
  KRAFLA_E_NETWORK: () => 'The model could not be reached. Is the server running, and is there a network? Try again.',
  KRAFLA_E_CUT: () => 'The connection broke while the model was on its way. Try again.',
  KRAFLA_E_STALLED: () => 'The download stands still: nothing has come for a while. Look at the network and try again.',
  KRAFLA_E_HTTP: ({ status }) =>
    status === 404
      ? 'The server does not have this model (404). Choose another one, or drop a package.'
      : `The server cannot give the model at the moment (${status}). Try again later.`,
  KRAFLA_E_CONTENT: () =>
    'A web page came in place of the model. Its address is wrong, or the network asks you to sign in.',
  KRAFLA_E_LENGTH: () =>
    'The model has another size than it should have. Get the package again, all its files together.',
  KRAFLA_E_INTEGRITY: () =>
    'The model was damaged on the way: its checksum is wrong. Try again, or get the package again.',
  KRAFLA_E_PACKAGE: () =>
    'This is no complete model package. It takes model.json and the files that it names (.mlb, .mlt).',
  KRAFLA_E_TEMPLATE: () =>
    "The model's chat template does not take this conversation. Change the system prompt, or clear.",
  KRAFLA_E_BUILD: () => 'This browser cannot run the engine: it lacks SIMD for WebAssembly. A newer browser will do.',
  KRAFLA_E_WORKER: () =>
    'The engine stopped, perhaps for want of memory. Load the model again; a smaller context (Settings) takes less.',
  KRAFLA_E_CLOSED: () => 'The model was closed. Load it again.',
  ML_E_FORMAT: () =>
    'This file is no model that can be read here. Get it again, or convert it anew with tools/convert.py.',
  ML_E_SHAPE: () => 'The parts of this model do not fit together. Convert it anew with tools/convert.py.',
  ML_E_IO: () => 'A file could not be read. Did it move, or change? Choose it again.',
  ML_E_NOMEM: () =>
    'There is not enough memory for this model here. Take a smaller context (Settings) or a smaller model.',
  ML_E_CONTEXT: ({ actual, expected }) =>
    `The conversation has grown too long for the model${actual ? ` (${actual} of ${expected} tokens)` : ''}. ` +
    'Clear it, or take a larger context in Settings and load the model again.',
};

/** @returns {{ words: string, details: string }} details: what the machine said, for who can use it */
export function explain(error) {
  const words = WORDS[error?.code]?.(error) ?? 'Something went wrong. Try again, or load the model again.';
  return { words, details: [error?.code, error?.message ?? String(error)].filter(Boolean).join(': ') };
}

/** A problem with what was dropped, before anything was tried. */
export function nothingUsable(files) {
  const what = files.length === 0 ? 'There was no file of a model in it.' : 'There is no .mlb file in it.';
  return { words: `${what} A package has model.json, a .mlb and a .mlt file.`, details: '' };
}

export const sizeWords = (bytes) => (bytes ? `${megabytes(bytes)} MB` : '');
