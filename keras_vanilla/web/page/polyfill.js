/**
 * The browser's Translator API, over translators at your own host.
 *
 *     import { install } from './polyfill.js';
 *     install('translators.json', { prefer: 'own' });
 *     const pair = { sourceLanguage: 'de', targetLanguage: 'en' };
 *     const translator = await Translator.create(pair);
 *     await translator.translate('Ein Hund rennt. Er ist müde.');
 *
 * It is that of https://webmachinelearning.github.io/translation-api, and works in dedicated
 * workers and without a click too. Its types are in polyfill.d.ts.
 */

import {
  requireModel,
  requireOneOf,
  requireOptions,
  requireThreads,
  requireType,
} from './errors.js';
import { bestPair, canonical, fit } from './languages.js';
import { Manifest } from './manifest.js';
import { anyOf } from './pace.js';
import { loadBytes } from './translate.js';

const { DOMException } = globalThis; // Chromium has none in a page that is gone
const STEPS = 0x10000; // of the progress of a download
const NO_WORDS = /^[\p{White_Space}\p{Cc}]*$/u;
const INTERNAL = Symbol('for create');
const sessions = new WeakMap(); // of each `Translator`

/**
 * Gives the page a global `Translator`.
 *
 * @param {string|URL} manifest Where the list of translators is.
 * @param {import('./polyfill.js').InstallOptions} [options] `prefer`: "native" leaves the
 *     browser's class where there is one, "own" replaces it. The others are those of
 *     `translatorOver`.
 * @returns The global `Translator`.
 */
export function install(manifest, options = {}) {
  requireOptions(options);
  const { prefer = 'native' } = options;
  requireOneOf('prefer', prefer, ['native', 'own']);
  const own = translatorOver(manifest, options);
  if (prefer === 'own' || !('Translator' in globalThis)) {
    for (const [name, value] of Object.entries({ Translator: own, CreateMonitor })) {
      Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
    }
  }
  return globalThis.Translator;
}

/**
 * A class `Translator` over the translators of a manifest, whatever the browser has.
 *
 * @param {string|URL} manifest Where the list of translators is.
 * @param {import('./polyfill.js').PolyfillOptions} [options] `runtime` as `loadTranslator`
 *     takes it; `inputQuota` is the length of the longest text, without a limit by default;
 *     `userActivation` is whether a download needs a click, as in browsers.
 */
export function translatorOver(manifest, options = {}) {
  requireModel(manifest, [String, URL], 'manifest');
  requireOptions(options);
  const { runtime, inputQuota = Infinity, userActivation = false } = options;
  requireType('inputQuota', inputQuota, 'number');
  requireType('userActivation', userActivation, 'boolean');
  const list = new Manifest(manifest);

  class Translator {
    constructor() {
      throw new TypeError('Illegal constructor');
    }

    static async availability(options) {
      requireActiveDocument();
      const pair = await pairFor(languagesOf(options), list);
      if (!pair || !globalThis.Worker) return 'unavailable';
      return pair.url ? list.availability(pair) : 'available';
    }

    static async create(options) {
      requireActiveDocument();
      const wanted = languagesOf(options);
      const signal = signalOf(options);
      signal.throwIfAborted();
      const report = reportTo(options.monitor, signal);
      const mayDownload = !userActivation || (navigator.userActivation?.isActive ?? true);
      return untilAborted(signal, async () => {
        await named('NotSupportedError', requireThreads());
        const pair = await pairFor(wanted, list);
        if (!pair) throw notListed(wanted);
        if (pair.url && !mayDownload) await requireKept(pair, list);
        const model = await modelOf(pair, { list, runtime, signal, report });
        const translator = Reflect.construct(WeakSet, [], Translator); // which nothing clones
        sessions.set(translator, new Session(pair, model, inputQuota, signal));
        return translator;
      });
    }

    get sourceLanguage() {
      return sessionOf(this).pair.sourceLanguage;
    }

    get targetLanguage() {
      return sessionOf(this).pair.targetLanguage;
    }

    get inputQuota() {
      return sessionOf(this).inputQuota;
    }

    translate(input, options = {}) {
      return promised(() => sessionOf(this).translate(arguments, options));
    }

    translateStreaming(input, options = {}) {
      return sessionOf(this).translateStreaming(arguments, options);
    }

    measureInputUsage(input, options = {}) {
      return promised(() => sessionOf(this).measureInputUsage(arguments, options));
    }

    destroy() {
      sessionOf(this).destroy();
    }
  }
  asInterface(Translator, 'Translator');
  return Translator;
}

/** What a `Translator` does; the first arguments of its methods are those of a call. */
class Session {
  #model; // undefined where each text is its own translation
  #destruction = new AbortController();
  #signal;

  constructor(pair, model, inputQuota, signal) {
    this.pair = pair;
    this.inputQuota = inputQuota;
    this.#model = model;
    this.#signal = anyOf([this.#destruction.signal, signal]);
    this.#signal.addEventListener('abort', () => model?.close());
    if (signal.aborted) model?.close();
  }

  async translate(given, options) {
    const { text, signal } = this.#begin(given, options);
    return untilAborted(signal, async () => {
      let translation = '';
      for await (const chunk of this.#chunks(text, signal)) translation += chunk;
      return translation;
    });
  }

  translateStreaming(given, options) {
    const { text, signal } = this.#begin(given, options);
    signal.throwIfAborted();
    const cancellation = new AbortController();
    const chunks = this.#chunks(text, anyOf([signal, cancellation.signal]));
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

  async measureInputUsage(given, options) {
    const { text, signal } = this.#begin(given, options);
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
    if (requested > this.inputQuota) throw quotaExceeded(requested, this.inputQuota);
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
    return this.inputQuota === Infinity ? 0 : Math.max(length, 1);
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
  const bytes = named('NetworkError', list.bytes(pair, { signal, onProgress }), signal);
  const model = loadBytes(bytes, { runtime, signal });
  model.catch(() => {}); // where `bytes` fails
  await bytes;
  report(1);
  return named('OperationError', model, signal);
}

/**
 * The promise that a call gives, or one that rejects with what the call throws: an async function
 * would await the first, and in a page that is gone nothing awaited comes.
 */
function promised(call) {
  try {
    return call();
  } catch (error) {
    return Promise.reject(error);
  }
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
  #handler = null;

  constructor(...key) {
    if (key[0] !== INTERNAL) throw new TypeError('Illegal constructor');
    super();
    this.addEventListener('downloadprogress', (event) => {
      if (typeof this.#handler === 'function') this.#handler(event);
    });
  }

  get ondownloadprogress() {
    return this.#handler;
  }

  set ondownloadprogress(handler) {
    this.#handler = Object(handler) === handler ? handler : null;
  }
}
asInterface(CreateMonitor, 'CreateMonitor');

/**
 * Gives a class the properties of an interface in Web IDL: enumerable members and a name, which a
 * bundler may have changed.
 */
function asInterface(Interface, value) {
  const { length, name, prototype, ...statics } = Object.getOwnPropertyDescriptors(Interface);
  const { constructor, ...members } = Object.getOwnPropertyDescriptors(prototype.value);
  for (const [owner, own] of [[Interface, statics], [Interface.prototype, members]]) {
    for (const key of Object.keys(own)) Object.defineProperty(owner, key, { enumerable: true });
  }
  const property = { value, configurable: true };
  Object.defineProperty(Interface, 'name', property);
  Object.defineProperty(Interface.prototype, Symbol.toStringTag, property);
}

function sessionOf(translator) {
  const session = sessions.get(translator);
  if (!session) throw new TypeError('Illegal invocation');
  return session;
}

/** A function that tells a monitor which fraction has arrived, as long as that grows. */
function reportTo(monitor, signal) {
  if (monitor === undefined) return () => {};
  if (typeof monitor !== 'function') throw new TypeError('The monitor is not a function.');
  const target = new CreateMonitor(INTERNAL);
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
  return anyOf(signal === undefined ? others : [...others, signal]);
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

/** Refuses to download a file without a click. */
async function requireKept(pair, list) {
  if ((await list.availability(pair)) === 'available') return;
  const message = 'The translator has to be downloaded, which needs a click or a key first.';
  throw new DOMException(message, 'NotAllowedError');
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
