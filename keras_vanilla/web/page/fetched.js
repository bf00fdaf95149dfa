/** A model from its address. */

import { TranslatorError } from './errors.js';

/**
 * The bytes of a model.
 *
 * @param {string|URL} url
 * @param {AbortSignal} [signal]
 * @returns {Promise<Uint8Array>}
 * @throws {TranslatorError} "missing"; or the signal's reason.
 */
export async function fetched(url, signal) {
  let response;
  try {
    response = await fetch(url, { signal });
  } catch {
    signal?.throwIfAborted();
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
