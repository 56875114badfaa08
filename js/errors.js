// errors.js - every failure that a caller may want to tell apart.
//
// Codes that begin with ML_E_ are those of src/ml.h, and mean the same here. Ours:
//
//   KRAFLA_E_BUILD      none of the wasm builds can run, or be loaded
//   KRAFLA_E_CLOSED     the model was closed
//   KRAFLA_E_WORKER     the worker could not be started, or died
//   KRAFLA_E_PACKAGE    model.json is not what it should be, or a file that it names is missing
//   KRAFLA_E_TEMPLATE   the chat template is missing, broken, or refuses the messages
//   KRAFLA_E_NETWORK    no answer: no network, no such server, or a server that does not allow other origins
//   KRAFLA_E_HTTP       an answer with a status other than success (`status`)
//   KRAFLA_E_CONTENT    an answer that is a web page instead of a file
//   KRAFLA_E_LENGTH     a file of another length than it should have (`expected`, `actual`)
//   KRAFLA_E_CUT        a download that ended early and could not be taken up again (`expected`, `actual`)
//   KRAFLA_E_STALLED    a download that stood still for too long
//   KRAFLA_E_INTEGRITY  a file whose SHA-256 is not that of model.json

export class KraflaError extends Error {
  /**
   * @param {string} code
   * @param {string} message one line
   * @param {object} [details] become properties: offset (in the file), url, status, expected, actual, cause
   */
  constructor(code, message, { cause, ...details } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'KraflaError';
    this.code = code;
    Object.assign(this, details);
  }
}

/** An error as a message can carry it. */
export function packError(error) {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error), details: {} };
  const { name, message, stack } = error;
  const plain = Object.entries(error).filter(([, value]) => value === null || typeof value !== 'object');
  return { name, message, stack, details: Object.fromEntries(plain) };
}

export function unpackError({ name, message, stack, details }) {
  const { code, ...rest } = details;
  if (name === 'KraflaError') return new KraflaError(code, message, rest);
  const Type = { TypeError, RangeError }[name] ?? Error;
  const error = Object.assign(new Type(message), details);
  error.name = name;
  error.stack = stack;
  return error;
}
