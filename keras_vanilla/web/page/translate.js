/**
 * A translator in the browser: text in, text out, nothing leaves the device.
 *
 *     import { loadTranslator } from './translate.js';
 *     const translator = await loadTranslator('translator.tflite');
 *     const { text } = await translator.translate('Ein Hund rennt.');
 */

import { readDescription, requireChecksum } from './description.js';
import { TranslatorError } from './errors.js';

export { TranslatorError };

/**
 * Loads a `.tflite` file that `keras-vanilla export` wrote.
 *
 * @param {string|URL|Uint8Array} model Where the file is, or its bytes.
 * @param {string|URL} runtime Where npm's folder `@litertjs` is served.
 * @returns {Promise<Translator>}
 * @throws {TranslatorError} with the `code`s of errors.js.
 */
export async function loadTranslator(
  model,
  runtime = new URL('runtime/', import.meta.url),
) {
  const bytes = model instanceof Uint8Array ? model.slice() : await fetched(model);
  const description = readDescription(bytes);
  await requireChecksum(bytes);
  const worker = new RequestQueue(new Worker(new URL('worker.js', import.meta.url)));
  const url = new URL(runtime, document.baseURI).href.replace(/\/*$/, '/');
  try {
    const { maxBytes } = await worker.request({ model: bytes, runtime: url }, [bytes.buffer]);
    return new Translator(worker, description, maxBytes);
  } catch (error) {
    worker.close();
    throw loadingError(error, url);
  }
}

/** A loaded model. `description` is what the file says about itself. */
export class Translator {
  #worker;

  constructor(worker, description, maxBytes) {
    this.#worker = worker;
    this.description = description;
    this.maxBytes = maxBytes;
  }

  /**
   * Translates one sentence.
   *
   * @param {string} text At most `maxBytes` bytes of UTF-8.
   * @returns {Promise<{text: string, score: number, milliseconds: number}>} The
   *     translation, its log-probability over the length penalty, and the time it took.
   * @throws {TranslatorError} "too-long", "too-many-tokens", "damaged", "failed" or
   *     "closed".
   */
  async translate(text) {
    const bytes = new TextEncoder().encode(text);
    if (bytes.length > this.maxBytes) throw tooLong(bytes.length, this.maxBytes);
    const padded = new Uint8Array(this.maxBytes);
    padded.set(bytes);
    const result = await this.#worker.request({ text: padded }, [padded.buffer]);
    const { score, milliseconds } = result;
    if (Number.isNaN(score)) throw tooManyTokens(this.description.max_source_tokens);
    return { text: decoded(result.bytes, score), score, milliseconds };
  }

  /** Ends the worker and frees its memory; what is being translated is "closed". */
  close() {
    this.#worker.close();
  }
}

/** A worker that answers requests in their order, until it ends. */
class RequestQueue {
  #worker;
  #waiting = [];
  #ended; // why no request is answered any more

  constructor(worker) {
    this.#worker = worker;
    worker.onmessage = ({ data: { result, error } }) => {
      const { resolve, reject } = this.#waiting.shift();
      if (error) reject(new TranslatorError(error.code, error.message));
      else resolve(result);
    };
    worker.onerror = (event) =>
      this.#end(new TranslatorError('failed', event.message ?? 'No worker started.'));
  }

  request(message, transferred) {
    return new Promise((resolve, reject) => {
      if (this.#ended) return reject(this.#ended);
      this.#waiting.push({ resolve, reject });
      this.#worker.postMessage(message, transferred);
    });
  }

  close() {
    this.#end(new TranslatorError('closed', 'The translator was closed.'));
  }

  #end(error) {
    this.#ended ??= error;
    this.#worker.terminate();
    this.#waiting.splice(0).forEach(({ reject }) => reject(this.#ended));
  }
}

async function fetched(url) {
  let response;
  try {
    response = await fetch(url);
  } catch {
    throw new TranslatorError('missing', `The model cannot be reached: ${url}`);
  }
  if (!response.ok) {
    throw new TranslatorError(
      'missing',
      `There is no model at ${response.url} (${response.status}).`,
    );
  }
  return new Uint8Array(await response.arrayBuffer());
}

function loadingError({ code, message }, runtime) {
  if (code === 'runtime') {
    return new TranslatorError(code, `LiteRT.js did not load from ${runtime} (${message}).`);
  }
  return new TranslatorError(
    'damaged',
    `The file is damaged, or LiteRT.js cannot run it (${message}).`,
  );
}

function tooLong(size, most) {
  return new TranslatorError(
    'too-long',
    `Too long: the text has ${size} bytes, and this translator takes at most ${most}.`,
  );
}

function tooManyTokens(most) {
  return new TranslatorError(
    'too-many-tokens',
    `Too long: the text has more than the ${most} tokens that this translator takes.`,
  );
}

/**
 * UTF-8 up to its last byte that is not zero.
 *
 * A damaged file without a checksum may give the contents of memory: bytes that are not
 * UTF-8, NULs, which no tokenizer writes, or a score that is no log-probability.
 */
function decoded(bytes, score) {
  const end = bytes.findLastIndex((octet) => octet !== 0) + 1;
  const written = bytes.subarray(0, end);
  try {
    if (written.includes(0) || !(-Infinity < score && score < 1)) throw new RangeError();
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(written);
  } catch {
    throw new TranslatorError('damaged', 'The file is damaged: what it gives is not text.');
  }
}
