/**
 * A translator in the browser: text in, text out, nothing leaves the device.
 *
 *     import { loadTranslator } from './translate.js';
 *     const translator = await loadTranslator('translator.tflite');
 *     const { text } = await translator.translate('Ein Hund rennt. Er ist müde.');
 *
 * Its types are in translate.d.ts; node.js has the same names for Node.js.
 */

import { requireModel, requireOptions, requireThreads, TranslatorError } from './errors.js';
import { absolute, fetched, folderOf } from './fetched.js';
import { openTranslator, Translator } from './translator.js';

export { Translator, TranslatorError };

// `runtime/` is beside this; Vite bundles this module, and serves its folder public/ there.
const HERE = import.meta.env?.BASE_URL ?? import.meta.url;

/**
 * Loads a `.tflite` file that `keras-vanilla export` wrote.
 *
 * It works in pages and in dedicated workers.
 *
 * @param {string|URL|Uint8Array|ArrayBuffer|Blob|Response} model Where the file is, or its
 *     bytes.
 * @param {import('./translate.js').LoadOptions} [options] `runtime`: where npm's folder
 *     `@litertjs` is served; if it is not given, beside this module, or with Vite in the
 *     folder public/. `onProgress` is called whenever more of the model, and then of the
 *     runtime, has arrived.
 * @returns {Promise<Translator>}
 * @throws {TranslatorError} with the `code`s of errors.js; or the signal's reason.
 */
export async function loadTranslator(model, options = {}) {
  requireModel(model);
  requireOptions(options);
  await requireThreads();
  return loadBytes(fetched(model, options), options);
}

/** As `loadTranslator`, but takes a promise of the bytes. */
export async function loadBytes(bytes, options) {
  bytes.catch(() => {}); // where something else fails before
  const folder = folderOf(options.runtime ?? new URL('runtime/', absolute(HERE)));
  const start = () => new Worker(new URL('worker.js', import.meta.url));
  return openTranslator(bytes, start, folder, options);
}
