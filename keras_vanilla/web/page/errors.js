/** An error of a translator: one sentence for its user, and a `code` for a program. */
export class TranslatorError extends Error {
  /**
   * @param {import('./translate.js').ErrorCode} code "missing", "not-tflite", "damaged",
   *     "not-ours", "other-format" or "runtime" while it loads; "too-long",
   *     "too-many-tokens", "damaged", "failed", "replaced", "closed" or "not-linked" while it
   *     translates; "wrong-type" for an argument.
   * @param {string} message One sentence.
   */
  constructor(code, message) {
    super(message);
    this.name = 'TranslatorError';
    this.code = code;
  }
}

/**
 * Refuses an argument of another type.
 *
 * @param {string} name The argument's.
 * @param {unknown} value
 * @param {string} type What it must be.
 * @param {boolean} [isRight] Whether it is; by default, whether `typeof` says so.
 * @throws {TranslatorError} "wrong-type".
 */
export function requireType(name, value, type, isRight = typeof value === type) {
  if (isRight) return;
  const received = value === null ? 'null' : typeof value;
  const sentence = `The argument ${name} must be of the type ${type}. Received: ${received}.`;
  throw new TranslatorError('wrong-type', sentence);
}

/** Refuses an option that has none of some values. */
export function requireOneOf(name, value, values) {
  if (values.includes(value)) return;
  const sentence = `The option ${name} must be "${values.join('" or "')}". Received: ${String(value)}.`;
  throw new TranslatorError('wrong-type', sentence);
}

/** Refuses options that are not an object, or have a signal or a function that is none. */
export function requireOptions(options) {
  requireType('options', options, 'object', Object(options) === options);
  const { signal, onProgress } = options;
  const isSignal = signal == null || typeof signal.throwIfAborted === 'function';
  requireType('signal', signal, 'AbortSignal', isSignal);
  if (onProgress !== undefined) requireType('onProgress', onProgress, 'function');
}

/** What holds the bytes of a model. */
export const BYTES = [Uint8Array, ArrayBuffer, Blob, Response];

/** Refuses a model that is neither a place nor, where they are taken, bytes. */
export function requireModel(model, types = [String, URL, ...BYTES], name = 'model') {
  const isModel = types.some((type) => Object(model) instanceof type);
  requireType(name, model, types.map((type) => type.name).join(' or '), isModel);
}

/** Raises "runtime" where no thread can be started: in service workers and some shared ones. */
export async function requireThreads() {
  if (globalThis.Worker) return;
  const sentence = 'A translator needs a page or a dedicated worker, which can start a thread.';
  throw new TranslatorError('runtime', sentence);
}
