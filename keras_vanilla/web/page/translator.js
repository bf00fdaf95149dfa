/** A loaded translator, and how it is loaded: the same in browsers and in Node.js. */

import { readDescription } from './description.js';
import { doubtsOf } from './doubts.js';
import { requireOptions, requireType, TranslatorError } from './errors.js';
import { translatePieces } from './long_text.js';
import { putMarks } from './marked_text.js';
import { readMarks } from './marks.js';
import { anyOf, pacer } from './pace.js';
import { openWorker } from './sentence_queue.js';
import { moved, wordsOfSentence } from './words.js';

const OLD_END_ID = 3; // of files of version 0.5.0, which do not state it

/**
 * Makes a translator of a file.
 *
 * @param {Promise<Uint8Array>|Uint8Array} file Its memory goes to the worker.
 * @param {function(): Worker} start Starts worker.js in a thread.
 * @param {string} runtime The URL of npm's folder `@litertjs`, with a slash at its end.
 * @param {import('./translate.js').LoadOptions} [options] `signal` and `onProgress`.
 * @returns {Promise<Translator>}
 */
export async function openTranslator(file, start, runtime, options) {
  const opened = await openWorker(file, readDescription, start, runtime, options);
  const { queue, description, maxBytes } = opened;
  return new Translator(queue, description, maxBytes);
}

/** A loaded model. `description` is what the file says about itself. */
export class Translator {
  #queue;
  #current = new Map(); // the AbortController of the newest call of each `replaces`

  /**
   * @param {SentenceQueue} queue
   * @param {import('./translate.js').Description} description
   * @param {number} maxBytes
   */
  constructor(queue, description, maxBytes) {
    this.#queue = queue;
    this.description = description;
    this.maxBytes = maxBytes;
  }

  /**
   * Translates a text of any length, sentence by sentence.
   *
   * @param {string} text Its lines and paragraphs stay lines and paragraphs.
   * @param {{signal?: AbortSignal, replaces?: string}} [options] A call ends the earlier
   *     ones with the same `replaces`: they reject with the code "replaced".
   * @throws {TranslatorError} As `translateSentence`, and "replaced".
   */
  async translate(text, options) {
    const pieces = [];
    const doubts = new Set();
    const whole = { text: '', words: [], truncated: false, split: false, milliseconds: 0 };
    for await (const piece of this.pieces(text, options)) {
      if (piece.error) throw piece.error;
      whole.split ||= piece.sentence === pieces.at(-1)?.sentence;
      pieces.push(piece);
      const shift = whole.text.length + piece.before.length;
      for (const word of piece.words) whole.words.push(moved(word, shift, piece.begin));
      whole.text += piece.before + piece.text;
      whole.truncated ||= piece.truncated;
      whole.milliseconds += piece.milliseconds;
      for (const doubt of piece.doubts) doubts.add(doubt);
    }
    return { ...whole, doubts: [...doubts], pieces };
  }

  /**
   * Translates a text with inline tags, such as `<b>`, and returns it with them.
   *
   * Every tag of the text occurs once in the translation, around the words that translate
   * those it marked; code between back-ticks, addresses, numbers and entities are copied.
   *
   * @param {string} text
   * @param {{signal?: AbortSignal, replaces?: string}} [options] As in `translate`.
   * @throws {TranslatorError} As `translate`, and "not-linked" if the file does not say which
   *     words belong together.
   */
  async translateMarked(text, options = {}) {
    requireType('text', text, 'string');
    const signal = this.#signalOf(options);
    const pace = pacer(signal);
    const { plain, marks } = await readMarks(text, pace);
    const result = await this.translate(plain, { signal });
    if (marks.length === 0) return result.text;
    const isLinked = typeof result.words[0]?.sourceBegin === 'number';
    if (result.text.trim() && !isLinked) throw notLinked();
    return putMarks(plain, marks, result, pace);
  }

  /** As `translate`, but yields each piece as soon as it is there; see long_text.js. */
  pieces(text, options = {}) {
    requireType('text', text, 'string');
    const signal = this.#signalOf(options);
    const translate = (piece) => this.translateSentence(piece, { signal });
    return translatePieces(text, translate, pacer(signal));
  }

  /**
   * Translates one sentence in one run of the model, or refuses it.
   *
   * @param {string} text At most `maxBytes` bytes of UTF-8.
   * @param {{signal?: AbortSignal}} [options]
   * @returns {Promise<import('./translate.js').SentenceTranslation>} The translation;
   *     whether it is only its beginning, because the file gives no more tokens; its words;
   *     its log-probability over the length penalty; what speaks against it; and the time it
   *     took.
   * @throws {TranslatorError} "too-long", "too-many-tokens", "damaged", "failed", "closed" or
   *     "wrong-type"; or the signal's reason.
   */
  async translateSentence(text, options = {}) {
    requireType('text', text, 'string');
    requireOptions(options);
    const { signal } = options;
    const size = new TextEncoder().encode(text).length;
    if (size > this.maxBytes) throw tooLong(size, this.maxBytes);
    const result = await this.#queue.request({ text }, { signal });
    const { bytes, ids, score, tokens, milliseconds } = result;
    if (Number.isNaN(score)) throw tooManyTokens(this.description.max_source_tokens);
    const endId = this.description.end_id ?? OLD_END_ID;
    const truncated = bytes.length > 0 && !ids.includes(endId);
    const translation = decoded(bytes, score);
    const words = wordsOfSentence(text, translation, tokens);
    const doubts = doubtsOf(text, translation, result);
    return { text: translation, truncated, words, score, doubts, milliseconds };
  }

  /** Ends the worker and frees its memory; what is not translated by then is "closed". */
  close() {
    this.#queue.close();
  }

  /** The signal of a call, which a later one with the same `replaces` aborts too. */
  #signalOf(options) {
    requireOptions(options);
    const { signal, replaces } = options;
    if (replaces === undefined) return signal;
    const error = new TranslatorError('replaced', 'A later call has replaced this one.');
    this.#current.get(replaces)?.abort(error);
    const controller = new AbortController();
    this.#current.set(replaces, controller);
    return signal ? anyOf([signal, controller.signal]) : controller.signal;
  }
}

function notLinked() {
  return new TranslatorError(
    'not-linked',
    'The file links no words: export it with --outputs alignment.',
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
 * UTF-8 to text.
 *
 * A damaged file without a checksum may give the contents of memory: bytes that are not
 * UTF-8, NULs, which no tokenizer writes, or a score that is no log-probability.
 */
function decoded(bytes, score) {
  try {
    if (bytes.includes(0) || !(-Infinity < score && score < 1)) throw new RangeError();
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new TranslatorError('damaged', 'The file is damaged: what it gives is not text.');
  }
}
