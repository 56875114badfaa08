// errors.js - every failure that a caller may want to tell apart.

export class KraflaError extends Error {
  /**
   * @param {string} code `ML_E_FORMAT` and so on as in src/ml.h, or one of ours
   * @param {string} message one line
   * @param {number} [offset] byte offset in the file, where there is one
   */
  constructor(code, message, offset) {
    super(message);
    this.name = 'KraflaError';
    this.code = code;
    if (offset !== undefined) this.offset = offset;
  }
}
