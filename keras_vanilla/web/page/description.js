/** What a translator's `.tflite` file says about itself, and whether it is undamaged. */

import { TranslatorError } from './errors.js';
import { readMetadata } from './flatbuffer.js';

// Entries of the file's metadata.
const DESCRIPTION = 'keras_vanilla';
const CHECKSUM = 'keras_vanilla_sha256';

const FORMATS = [1, 2, 3, 4].map((number) => `keras_vanilla translator ${number}`);
const DIGEST_BYTES = 32; // of SHA-256, at the end of the file

/**
 * Maps a `.tflite` file to the description that keras-vanilla wrote into it, as JSON.
 *
 * @param {Uint8Array} bytes The file.
 * @param {string} [form] What goes in and out of it: "text", or "inside".
 * @returns {Object} Its keys are the arguments of `keras_vanilla.export.Description`.
 * @throws {TranslatorError} "not-tflite", "damaged", "not-ours" or "other-format".
 */
export function readDescription(bytes, form = 'text') {
  const begin = new TextDecoder('latin1').decode(bytes.subarray(4, 8));
  if (begin !== 'TFL3') {
    throw new TranslatorError('not-tflite', 'This is not a .tflite file.');
  }
  const description = whole(bytes, () => parsed(readMetadata(bytes).get(DESCRIPTION)));
  if (description === undefined) {
    throw new TranslatorError(
      'not-ours',
      'This .tflite file is not a translator that keras-vanilla exported.',
    );
  }
  if (!FORMATS.includes(description.format)) {
    throw new TranslatorError(
      'other-format',
      `The file's format is “${description.format}”; this page reads “${FORMATS.at(-1)}”.`,
    );
  }
  if ((description.form ?? 'text') !== form) {
    throw new TranslatorError(
      'not-ours',
      `This file has the form “${description.form}”; this page needs the form “${form}”.`,
    );
  }
  return description;
}

/**
 * Refuses a file whose bytes are not those that were exported.
 *
 * A file of version 0.5.0 and earlier has no checksum, and a browser computes one only on
 * https and on loopback: there nothing is checked.
 *
 * @param {Uint8Array} bytes A file that `readDescription` reads.
 * @throws {TranslatorError} "damaged".
 */
export async function requireChecksum(bytes) {
  const { subtle } = globalThis.crypto;
  if (!subtle || !readMetadata(bytes).has(CHECKSUM)) return;
  const body = bytes.subarray(0, -DIGEST_BYTES);
  const digest = new Uint8Array(await subtle.digest('SHA-256', body));
  const stated = bytes.subarray(-DIGEST_BYTES);
  if (digest.some((octet, i) => octet !== stated[i])) {
    throw new TranslatorError(
      'damaged',
      'The file is damaged: its bytes do not have the checksum at its end.',
    );
  }
}

function parsed(json) {
  if (json === undefined) return undefined;
  const description = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(json));
  return Object(description); // JSON may hold null, which has no fields
}

/** What `read` returns, unless the bytes end or lead astray before it has. */
function whole(bytes, read) {
  try {
    return read();
  } catch {
    const size = bytes.length.toLocaleString('en');
    throw new TranslatorError(
      'damaged',
      `The file is damaged, or cut off after ${size} bytes.`,
    );
  }
}
