/** An error of a translator: one sentence for its user, and a `code` for a program. */
export class TranslatorError extends Error {
  /**
   * @param {import('./translate.js').ErrorCode} code "missing", "not-tflite", "damaged",
   *     "not-ours", "other-format" or "runtime" while it loads; "too-long",
   *     "too-many-tokens", "damaged", "failed", "replaced", "closed" or "not-linked" while it
   *     translates.
   * @param {string} message One sentence.
   */
  constructor(code, message) {
    super(message);
    this.name = 'TranslatorError';
    this.code = code;
  }
}
