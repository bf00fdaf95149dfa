/** A model that shows what it computes: its attention, and what it expects to follow. */

import { readDescription } from '../description.js';
import { requireModel, requireOptions, requireType, TranslatorError } from '../errors.js';
import { fetched, folderOf } from '../fetched.js';
import { readMetadata } from '../flatbuffer.js';
import { pacer } from '../pace.js';
import { openWorker } from '../sentence_queue.js';
import { logSoftmax } from './search.js';
import { SPACE, Vocabulary } from './vocabulary.js';

const VOCABULARY = 'keras_vanilla_vocabulary'; // of the entry in the file's metadata
const EXTRA_TOKENS = 50; // an output has at most so many more than its source
const REMEMBERED = 2000; // steps

/**
 * Loads a file that `keras-vanilla export --form inside` wrote.
 *
 * @param {string|URL} url
 * @param {string|URL} runtime Where npm's folder `@litertjs` is, with a slash at its end.
 * @param {{onProgress?: function(import('../translate.js').Progress)}} [options]
 * @returns {Promise<InsideModel>}
 * @throws {TranslatorError} With the `code`s of errors.js.
 */
export async function openInside(url, runtime, options = {}) {
  requireModel(url, [String, URL]);
  requireOptions(options);
  const folder = folderOf(runtime);
  let vocabulary; // as JSON, which is parsed when its checksum is known to be right
  const read = (bytes) => {
    const description = readDescription(bytes, 'inside');
    vocabulary = new TextDecoder().decode(readMetadata(bytes).get(VOCABULARY));
    return description;
  };
  const start = () => new Worker(new URL('worker.js', import.meta.url));
  const opened = await openWorker(fetched(url, options), read, start, folder, options);
  const { queue, description, maxBytes } = opened;
  const known = new Vocabulary(JSON.parse(vocabulary), description.end_id);
  return new InsideModel(queue, description, known, maxBytes);
}

/** A loaded model. `description` is what the file says about itself. */
export class InsideModel {
  #queue;
  #steps = new Map(); // text and ids -> what follows, the oldest first
  #pace = pacer(); // of what is known already

  constructor(queue, description, vocabulary, maxBytes) {
    this.#queue = queue;
    this.description = description;
    this.vocabulary = vocabulary;
    this.maxBytes = maxBytes;
  }

  /**
   * Encodes a sentence.
   *
   * @param {string} text
   * @returns {Promise<Sentence>} `tokens` are the pieces, each with its place in the text;
   *     `weights` are per layer and head those of the encoder's attention, row by row.
   * @throws {TranslatorError} "too-long" or "too-many-tokens".
   */
  async encode(text) {
    requireType('text', text, 'string');
    const size = new TextEncoder().encode(text).length;
    if (size > this.maxBytes) {
      const limit = `this model takes at most ${this.maxBytes}`;
      throw new TranslatorError('too-long', `The text has ${size} bytes, and ${limit}.`);
    }
    const { count, ids, spans, ...rest } = await this.#queue.request({ source: text }, {});
    const most = this.description.max_source_tokens;
    if (count > most) {
      const limit = `this model takes at most ${most}`;
      throw new TranslatorError('too-many-tokens', `The text has ${count} pieces; ${limit}.`);
    }
    const tokens = tokensOf(text, spans, (i) => this.vocabulary.isCode(ids[i]));
    const limit = Math.min(count + EXTRA_TOKENS, this.description.max_output_tokens);
    return { text, tokens, limit, ...rest };
  }

  /**
   * What follows ids, and what the step that says so attended to.
   *
   * @param {string} text
   * @param {number[]} ids Without the start.
   * @returns {Promise<Step>} `logProbs` Float64Array (V,); `self` and `cross` per layer and
   *     head, the weights of the tokens so far (with the start) and of the source's pieces.
   */
  async step(text, ids) {
    requireType('text', text, 'string');
    requireType('ids', ids, 'Array', Array.isArray(ids));
    const key = [text, ...ids].join('\0');
    await this.#pace();
    if (!this.#steps.has(key)) {
      const asked = { ids: [this.vocabulary.startId, ...ids], source: text };
      const step = await this.#queue.request(asked, {});
      this.#steps.set(key, { ...step, logProbs: logSoftmax(step.logits) });
      const [oldest] = this.#steps.keys();
      if (this.#steps.size > REMEMBERED) this.#steps.delete(oldest);
    }
    return this.#steps.get(key);
  }

  /** The log-probability of an id after ids. */
  async logProb(text, ids, id) {
    return (await this.step(text, ids)).logProbs[id];
  }
}

/** The pieces of a text: what stands in it between two places; the last one is its end. */
function tokensOf(text, spans, isCode) {
  const octets = new TextEncoder().encode(text);
  const index = (place) => new TextDecoder().decode(octets.subarray(0, place)).length;
  const tokens = [];
  for (let i = 0; i < spans.length; i += 2) {
    const [begin, end] = [index(spans[i]), index(spans[i + 1])];
    const isEnd = i + 2 === spans.length;
    const silent = begin === end && isCode(i / 2) ? '⟨code⟩' : SPACE; // of a language
    const name = text.slice(begin, end).trim() || (isEnd ? '⟨end⟩' : silent);
    tokens.push({ name, begin, end });
  }
  return tokens;
}
