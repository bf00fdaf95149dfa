/**
 * A translator in Node.js 20 and later, with the names of translate.js.
 *
 * Its runtime is npm's package `@litertjs/core`, in a thread of its own. The thread keeps the
 * process alive until `close()`.
 */

import { readFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { requireModel, requireOptions, TranslatorError } from './errors.js';
import { fetched } from './fetched.js';
import { openTranslator, Translator } from './translator.js';

export { Translator, TranslatorError };

/**
 * Loads a `.tflite` file that `keras-vanilla export` wrote.
 *
 * @param {string|URL|Uint8Array|ArrayBuffer|Blob|Response} model The file's path or `file:`
 *     URL, or its bytes.
 * @param {{runtime?: string|URL, signal?: AbortSignal}} [options] `runtime`: npm's folder
 *     `@litertjs`; the one that is installed, if it is not given.
 * @returns {Promise<Translator>}
 * @throws {TranslatorError} with the `code`s of errors.js; or the signal's reason.
 */
export async function loadTranslator(model, options = {}) {
  requireModel(model);
  requireOptions(options);
  const { runtime, signal } = options;
  const isPlace = [String, URL].some((type) => Object(model) instanceof type);
  const folder = runtime === undefined ? installed() : fileUrl(runtime);
  const bytes = isPlace ? contents(model, signal) : fetched(model, { signal });
  return openTranslator(bytes, start, folder.replace(/\/*$/, '/'), { signal });
}

async function contents(path, signal) {
  try {
    return new Uint8Array(await readFile(path, { signal: signal ?? undefined }));
  } catch ({ code }) {
    signal?.throwIfAborted();
    throw new TranslatorError('missing', `The model cannot be read: ${path} (${code}).`);
  }
}

/** The URL of the folder `@litertjs` where npm has installed it. */
function installed() {
  try {
    return new URL('../..', import.meta.resolve('@litertjs/core')).href;
  } catch {
    throw new TranslatorError('runtime', 'LiteRT.js is missing: npm install @litertjs/core');
  }
}

function fileUrl(path) {
  requireModel(path, [String, URL], 'runtime');
  return path instanceof URL ? path.href : pathToFileURL(path).href;
}

/** worker.js in a thread, as a browser's `Worker`. */
function start() {
  const url = new URL('node_worker.js', import.meta.url);
  const worker = new Worker(url, { execArgv: [] }); // such as --input-type
  worker.on('message', (data) => worker.onmessage({ data }));
  worker.on('error', (error) => worker.onerror(error));
  return worker;
}
