/** The types of translate.js, for browsers, and of node.js. */

export type ErrorCode =
  | 'missing'
  | 'not-tflite'
  | 'damaged'
  | 'not-ours'
  | 'other-format'
  | 'runtime'
  | 'too-long'
  | 'too-many-tokens'
  | 'failed'
  | 'replaced'
  | 'closed'
  | 'not-linked'
  | 'wrong-type';

/** One sentence for a user, and a `code` for a program. */
export class TranslatorError extends Error {
  constructor(code: ErrorCode, message: string);
  readonly code: ErrorCode;
}

/** What a file says about itself. */
export interface Description {
  format: string;
  version: string;
  form?: 'text';
  name: string;
  /** A BCP-47 tag such as "de"; null where the file does not state it. */
  source_language: string | null;
  target_language: string | null;
  max_bytes: number;
  max_source_tokens: number;
  max_output_tokens: number;
  beam_size: number;
  length_penalty: number | null;
  quantize: string | null;
  parameters: number;
  model_license: string | null;
  data: string | null;
  data_license: string | null;
  outputs?: ('alignment' | 'confidence')[];
  end_id?: number | null;
  oldest_runtime?: string | null;
  /** Sentences in the source language, to begin with. */
  examples?: string[];
  /** The model that it was converted from, such as "hub:OWNER/NAME@COMMIT". */
  converted_from?: string | null;
}

/** How much of a file has arrived, in bytes. */
export interface Progress {
  /** The runtime is LiteRT.js's WASM, which is loaded after the model. */
  part: 'model' | 'runtime';
  received: number;
  /** null where the host does not state it, or compresses the file. */
  total: number | null;
}

export interface LoadOptions {
  /**
   * Browsers: where npm's folder `@litertjs` is served; by default as `runtime/` beside the
   * module, or with Vite in the folder public/. Node.js: the path of that folder; the
   * installed package's by default.
   */
  runtime?: string | URL;
  signal?: AbortSignal;
  /** Browsers: called whenever more of the model, and then of the runtime, has arrived. */
  onProgress?: (progress: Progress) => void;
}

export interface SentenceOptions {
  signal?: AbortSignal;
}

export interface TextOptions extends SentenceOptions {
  /** A call ends the earlier ones with the same name: they reject with "replaced". */
  replaces?: string;
}

/**
 * A word of a translation, in indices of the two strings. What a file does not say, which
 * `export --outputs` adds, is null.
 */
export interface Word {
  begin: number;
  end: number;
  /** The word that it translates, as the model's attention says; empty if there is none. */
  sourceBegin: number | null;
  sourceEnd: number | null;
  /** The lowest probability of its tokens. */
  confidence: number | null;
}

/** What speaks against a translation, see doubts.js; no proof that it is wrong. */
export type Doubt = 'unlikely' | 'missing' | 'unchanged' | 'unknown';

export interface SentenceTranslation {
  text: string;
  /** Whether it is only the beginning: the file gives no more tokens. */
  truncated: boolean;
  /** None if the file was exported without `--outputs`. */
  words: Word[];
  /** The log-probability; of a beam search, over the length penalty. */
  score: number;
  doubts: Doubt[];
  /** The time it took when it was computed. */
  milliseconds: number;
}

/** What pieces have in common. */
interface Source {
  /** Without the white space around it. */
  source: string;
  /** Where it begins in the text. */
  begin: number;
  /** The number of its sentence; pieces of a sentence that was too long share one. */
  sentence: number;
  /** The white space before its translation. */
  before: string;
}

export interface TranslatedPiece extends Source, SentenceTranslation {
  error?: undefined;
}

/** A piece that could not be translated. */
export interface FailedPiece extends Source {
  error: TranslatorError;
  text?: undefined;
  truncated?: undefined;
  words?: undefined;
  doubts?: undefined;
}

export type Piece = TranslatedPiece | FailedPiece;

export interface Translation {
  text: string;
  /** None if the file was exported without `--outputs`. */
  words: Word[];
  /** Whether the translation of any piece is. */
  truncated: boolean;
  /** Those of all pieces. */
  doubts: Doubt[];
  /** Whether a sentence was longer than the file takes, and was translated in parts. */
  split: boolean;
  milliseconds: number;
  pieces: TranslatedPiece[];
}

/** A loaded model; `loadTranslator` makes it. */
export class Translator {
  private constructor();
  description: Description;
  maxBytes: number;

  /** Translates a text of any length, sentence by sentence. */
  translate(text: string, options?: TextOptions): Promise<Translation>;

  /** Translates a text with inline tags, such as `<b>`, and carries them over. */
  translateMarked(text: string, options?: TextOptions): Promise<string>;

  /** As `translate`, but yields each piece as soon as it is there. */
  pieces(text: string, options?: TextOptions): AsyncGenerator<Piece, void, undefined>;

  /** Translates one sentence in one run of the model, or refuses it. */
  translateSentence(text: string, options?: SentenceOptions): Promise<SentenceTranslation>;

  /** Frees its memory; what is not translated by then rejects with the code "closed". */
  close(): void;
}

/**
 * Loads a file that `keras-vanilla export` wrote: from its URL, or in Node.js its path, or
 * from its bytes. In browsers it needs a page or a dedicated worker.
 */
export function loadTranslator(
  model: string | URL | Uint8Array | ArrayBuffer | Blob | Response,
  options?: LoadOptions,
): Promise<Translator>;
