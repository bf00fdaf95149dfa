/** A model from its address. */

import { BYTES, TranslatorError } from './errors.js';

/** The whole of a URL that is relative to the page, or to the worker. */
export function absolute(url) {
  return new URL(url, globalThis.document?.baseURI ?? location.href).href;
}

/** The whole of a URL of the folder `@litertjs`, with a slash at its end. */
export function folderOf(runtime) {
  try {
    return absolute(runtime).replace(/\/*$/, '/');
  } catch {
    throw new TranslatorError('runtime', 'The option runtime is not a URL.');
  }
}

/**
 * The bytes of a model.
 *
 * @param {string|URL|Uint8Array|ArrayBuffer|Blob|Response} model Where it is, or what holds it.
 * @param {{signal?: AbortSignal, cache?: RequestCache,
 *     onProgress?: function(import('./translate.js').Progress)}} [options] `onProgress` is
 *     called whenever more has arrived.
 * @returns {Promise<Uint8Array>}
 * @throws {TranslatorError} "missing"; or the signal's reason.
 */
export async function fetched(model, { signal, cache, onProgress } = {}) {
  const isGiven = BYTES.some((type) => model instanceof type);
  if (model.bodyUsed) throw new TranslatorError('missing', 'The response has been read before.');
  let response;
  try {
    response = isGiven ? responseOf(model) : await fetch(model, { signal, cache });
    if (response.ok) return await bytesOf(response, { signal, onProgress });
  } catch (error) {
    signal?.throwIfAborted();
    const place = isGiven ? response?.url : model;
    const missing = response ? `did not arrive whole: ${place}` : `cannot be reached: ${place}`;
    const what = place ? missing : 'cannot be read';
    throw new TranslatorError('missing', `The model ${what} (${error?.message})`);
  }
  throw new TranslatorError(
    'missing',
    `There is no model at ${response.url} (${response.status}).`,
  );
}

function responseOf(model) {
  if (model instanceof Response) return model;
  return new Response(model instanceof Uint8Array ? model.slice() : model); // may be shared
}

async function bytesOf(response, { signal, onProgress }) {
  const stated = statedLength(response);
  let received = 0;
  const count = new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk);
      received += chunk.length;
      onProgress?.(progress('model', received, stated));
    },
  });
  const counted = new Response(response.body?.pipeThrough(count, { signal: signal ?? undefined }));
  return new Uint8Array(await counted.arrayBuffer());
}

/** The length that a response states of its body; of a compressed one it is another. */
function statedLength({ headers }) {
  return headers.has('Content-Encoding') ? 0 : Number(headers.get('Content-Length'));
}

/** How much of a file has arrived; a stated length that is less is wrong. */
export function progress(part, received, stated) {
  return { part, received, total: received <= stated ? stated : null };
}
