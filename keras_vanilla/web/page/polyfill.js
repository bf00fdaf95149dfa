/**
 * The browser's Translator API, for browsers without it, over translators at your own host.
 *
 *     import { install } from './polyfill.js';
 *     install('translators.json');
 *     const pair = { sourceLanguage: 'de', targetLanguage: 'en' };
 *     const translator = await Translator.create(pair);
 *     await translator.translate('Ein Hund rennt. Er ist müde.');
 *
 * It is that of https://webmachinelearning.github.io/translation-api, and works in workers and
 * without a click too. Its types are in polyfill.d.ts.
 */

import { requireModel, requireOptions, requireType } from './errors.js';
import { bestPair, canonical, fit } from './languages.js';
import { Manifest } from './manifest.js';
import { loadTranslator } from './translate.js';

const { DOMException } = globalThis; // Chromium has none in a page that is gone
const STEPS = 0x10000; // of the progress of a download
const NO_WORDS = /^[\p{White_Space}\p{Cc}]*$/u;
const INTERNAL = Symbol('for create');

/**
 * Gives the page a global `Translator`, unless the browser has one.
 *
 * @param {string|URL} manifest Where the list of translators is.
 * @param {import('./polyfill.js').PolyfillOptions} [options] As `translatorOver` takes them.
 * @returns The global `Translator`.
 */
export function install(manifest, options) {
  if (!('Translator' in globalThis)) {
    const value = translatorOver(manifest, options);
    const property = { value, writable: true, configurable: true };
    Object.defineProperty(globalThis, 'Translator', property);
  }
  return globalThis.Translator;
}

/**
 * A class `Translator` over the translators of a manifest, whatever the browser has.
 *
 * @param {string|URL} manifest Where the list of translators is.
 * @param {import('./polyfill.js').PolyfillOptions} [options] `runtime` as `loadTranslator`
 *     takes it; `inputQuota` is the length of the longest text, without a limit by default.
 */
export function translatorOver(manifest, options = {}) {
  requireModel(manifest, [String, URL], 'manifest');
  requireOptions(options);
  const { runtime, inputQuota = Infinity } = options;
  requireType('inputQuota', inputQuota, 'number');
  const list = new Manifest(manifest);

  return class Translator extends CreatedTranslator {
    static async availability(options) {
      requireActiveDocument();
      const pair = await pairFor(languagesOf(options), list);
      if (!pair) return 'unavailable';
      return pair.url ? list.availability(pair) : 'available';
    }

    static async create(options) {
      requireActiveDocument();
      const wanted = languagesOf(options);
      const signal = signalOf(options);
      signal.throwIfAborted();
      const report = reportTo(options.monitor, signal);
      return untilAborted(signal, async () => {
        const pair = await pairFor(wanted, list);
        if (!pair) throw notListed(wanted);
        const model = await modelOf(pair, { list, runtime, signal, report });
        return new Translator(INTERNAL, pair, model, inputQuota, signal);
      });
    }
  };
}

/** What a `Translator` does once it is created. */
class CreatedTranslator {
  #pair;
  #model; // undefined where each text is its own translation
  #inputQuota;
  #destruction = new AbortController();
  #signal;

  constructor(key, pair, model, inputQuota, signal) {
    if (key !== INTERNAL) throw new TypeError('Illegal constructor');
    this.#pair = pair;
    this.#model = model;
    this.#inputQuota = inputQuota;
    this.#signal = AbortSignal.any([this.#destruction.signal, signal]);
    this.#signal.addEventListener('abort', () => model?.close());
    if (signal.aborted) model?.close();
  }

  get sourceLanguage() {
    return this.#pair.sourceLanguage;
  }

  get targetLanguage() {
    return this.#pair.targetLanguage;
  }

  get inputQuota() {
    return this.#inputQuota;
  }

  get [Symbol.toStringTag]() {
    return 'Translator';
  }

  async translate(input, options = {}) {
    const { text, signal } = this.#begin(arguments, options);
    return untilAborted(signal, async () => {
      let translation = '';
      for await (const chunk of this.#chunks(text, signal)) translation += chunk;
      return translation;
    });
  }

  translateStreaming(input, options = {}) {
    const { text, signal } = this.#begin(arguments, options);
    signal.throwIfAborted();
    const cancellation = new AbortController();
    const chunks = this.#chunks(text, AbortSignal.any([signal, cancellation.signal]));
    let abort;
    return new ReadableStream({
      start(controller) {
        abort = () => controller.error(signal.reason);
        signal.addEventListener('abort', abort);
      },
      async pull(controller) {
        const { value, done } = await chunks.next();
        if (!done) return controller.enqueue(value);
        signal.removeEventListener('abort', abort);
        return controller.close();
      },
      cancel() {
        signal.removeEventListener('abort', abort);
        cancellation.abort();
      },
    });
  }

  async measureInputUsage(input, options = {}) {
    const { text, signal } = this.#begin(arguments, options);
    return untilAborted(signal, async () => this.#usageOf(text));
  }

  destroy() {
    this.#destruction.abort(new DOMException('The translator was destroyed.', 'AbortError'));
  }

  /** The text of a call, and the signal that ends it. */
  #begin(given, options) {
    if (given.length === 0) throw new TypeError('An input is required.');
    const text = `${given[0]}`;
    const signal = signalOf(options, this.#signal);
    requireActiveDocument();
    return { text, signal };
  }

  /** The translation of a text, sentence by sentence. */
  async *#chunks(text, signal) {
    const requested = this.#usageOf(text);
    if (requested > this.#inputQuota) throw quotaExceeded(requested, this.#inputQuota);
    if (!this.#model || NO_WORDS.test(text)) {
      yield text;
      return;
    }
    try {
      for await (const piece of this.#model.pieces(text, { signal })) {
        if (piece.error) throw piece.error;
        yield piece.before + piece.text;
      }
    } catch (error) {
      signal.throwIfAborted();
      throw new DOMException(error.message, 'UnknownError');
    }
  }

  #usageOf({ length }) {
    return this.#inputQuota === Infinity ? 0 : Math.max(length, 1);
  }
}

/** The model of a pair of languages; none where each text is its own translation. */
async function modelOf(pair, { list, runtime, signal, report }) {
  report(0);
  if (!pair.url) {
    report(1);
    return undefined;
  }
  const onProgress = ({ received }) => received < pair.size && report(received / pair.size);
  const bytes = await named('NetworkError', list.bytes(pair, { signal, onProgress }), signal);
  report(1);
  return named('OperationError', loadTranslator(bytes, { runtime, signal }), signal);
}

/** What a promise gives; if it fails, the signal's reason, or a DOMException with a name. */
async function named(name, promise, signal) {
  try {
    return await promise;
  } catch (error) {
    signal?.throwIfAborted();
    throw new DOMException(error.message, name);
  }
}

/** What an operation gives, or the signal's reason as soon as it is aborted. */
async function untilAborted(signal, operation) {
  signal.throwIfAborted();
  let abort;
  const aborted = new Promise((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort);
  });
  try {
    const result = await Promise.race([aborted, operation()]);
    signal.throwIfAborted();
    return result;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * The pair of a list that serves two languages, or else, if a text needs no translation, the
 * two languages without a file; undefined if there is neither.
 */
async function pairFor(wanted, list) {
  const pairs = await named('UnknownError', list.pairs());
  const isSame = fit(wanted.sourceLanguage, wanted.targetLanguage) > 0;
  return bestPair(pairs, wanted) ?? (isSame ? wanted : undefined);
}

/** The event target that `create` gives to its `monitor`. */
class CreateMonitor extends EventTarget {
  ondownloadprogress = null;

  constructor() {
    super();
    this.addEventListener('downloadprogress', (event) => this.ondownloadprogress?.(event));
  }
}

/** A function that tells a monitor which fraction has arrived, as long as that grows. */
function reportTo(monitor, signal) {
  if (monitor === undefined) return () => {};
  if (typeof monitor !== 'function') throw new TypeError('The monitor is not a function.');
  const target = new CreateMonitor();
  monitor(target);
  let last = -1;
  return (fraction) => {
    const loaded = Math.floor(fraction * STEPS) / STEPS;
    if (signal.aborted || loaded <= last) return;
    last = loaded;
    const progress = { lengthComputable: true, loaded, total: 1 };
    target.dispatchEvent(new ProgressEvent('downloadprogress', progress));
  };
}

/** The languages that the options of `create` and `availability` name, canonicalized. */
function languagesOf(options) {
  const [sourceLanguage, targetLanguage] = ['sourceLanguage', 'targetLanguage'].map((name) => {
    const tag = dictionary(options)[name];
    if (tag === undefined) throw new TypeError(`The option ${name} is required.`);
    return `${tag}`;
  });
  return {
    sourceLanguage: canonical(sourceLanguage),
    targetLanguage: canonical(targetLanguage),
  };
}

/** A signal that is aborted with the one of the options, or with any other. */
function signalOf(options, ...others) {
  const { signal } = dictionary(options);
  return AbortSignal.any(signal === undefined ? others : [...others, signal]);
}

/** Options as Web IDL takes them. */
function dictionary(options) {
  const given = options ?? {};
  if (Object(given) !== given) throw new TypeError('The options are not an object.');
  return given;
}

function requireActiveDocument() {
  if (globalThis.document && !document.defaultView) {
    throw new DOMException('The document is not active.', 'InvalidStateError');
  }
}

function notListed({ sourceLanguage, targetLanguage }) {
  const message = `There is no translator from ${sourceLanguage} to ${targetLanguage}.`;
  return new DOMException(message, 'NotSupportedError');
}

function quotaExceeded(requested, quota) {
  const message = `The text has ${requested} characters, and the quota is ${quota}.`;
  const numbers = { requested, quota };
  if (globalThis.QuotaExceededError) return new QuotaExceededError(message, numbers);
  return Object.assign(new DOMException(message, 'QuotaExceededError'), numbers);
}
