/** The types of polyfill.js: the Translator API of browsers. */

export type Availability = 'unavailable' | 'downloadable' | 'downloading' | 'available';

export interface TranslatorCreateCoreOptions {
  /** A BCP 47 tag; "en-US" is served by "en". */
  sourceLanguage: string;
  targetLanguage: string;
}

export interface TranslatorCreateOptions extends TranslatorCreateCoreOptions {
  /** Ends the creation; after it, destroys the translator. */
  signal?: AbortSignal;
  /** Called once, before anything is downloaded. */
  monitor?: (monitor: CreateMonitor) => void;
}

export interface TranslatorTranslateOptions {
  signal?: AbortSignal;
}

/** Its events say which part of the file has arrived: `loaded` goes from 0 to 1. */
export interface CreateMonitor extends EventTarget {
  ondownloadprogress: ((event: ProgressEvent) => void) | null;
  addEventListener(
    type: 'downloadprogress',
    listener: (event: ProgressEvent) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
}

/** A translator from one language to another; `create` makes it. */
export interface Translator {
  /** The tag of the manifest's pair. */
  readonly sourceLanguage: string;
  readonly targetLanguage: string;
  /** The length of the longest text; Infinity unless `PolyfillOptions` has it. */
  readonly inputQuota: number;

  /** Translates a text of any length, sentence by sentence. */
  translate(input: string, options?: TranslatorTranslateOptions): Promise<string>;

  /** As `translate`, but gives each sentence as soon as it is translated. */
  translateStreaming(
    input: string,
    options?: TranslatorTranslateOptions,
  ): ReadableStream<string>;

  /** How much of the quota a text takes; 0 without a quota. */
  measureInputUsage(input: string, options?: TranslatorTranslateOptions): Promise<number>;

  /** Frees its memory; unfinished and later calls reject with an AbortError. */
  destroy(): void;
}

export interface TranslatorConstructor {
  readonly prototype: Translator;
  availability(options: TranslatorCreateCoreOptions): Promise<Availability>;
  create(options: TranslatorCreateOptions): Promise<Translator>;
}

/** An entry of a manifest, which is a JSON file with an array of them. */
export interface ManifestEntry {
  sourceLanguage: string;
  targetLanguage: string;
  /** A URL, relative to the manifest. */
  file: string;
  /** In bytes. */
  size: number;
  /** In hexadecimal digits, as `keras-vanilla describe` shows it. */
  sha256: string;
}

export interface PolyfillOptions {
  /** Where npm's folder `@litertjs` is served, as `loadTranslator` takes it. */
  runtime?: string | URL;
  /** The length of the longest text, in UTF-16 code units; without a limit by default. */
  inputQuota?: number;
  /**
   * Whether `create` downloads a file only after a click or a key, as in browsers, and rejects
   * with a NotAllowedError otherwise; false by default.
   */
  userActivation?: boolean;
}

export interface InstallOptions extends PolyfillOptions {
  /** "native", the default, leaves the browser's `Translator`; "own" replaces it. */
  prefer?: 'native' | 'own';
}

/** Gives the page a global `Translator` over a manifest; returns the global `Translator`. */
export function install(
  manifest: string | URL,
  options?: InstallOptions,
): TranslatorConstructor;

/** A class `Translator` over a manifest, whatever the browser has. */
export function translatorOver(
  manifest: string | URL,
  options?: PolyfillOptions,
): TranslatorConstructor;
