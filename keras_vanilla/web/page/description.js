/** What a translator's `.tflite` file says about itself, read without TensorFlow Lite. */

import { TranslatorError } from './errors.js';

const NAME = 'keras_vanilla';
const FORMAT = 'keras_vanilla translator 1';

// The fields' numbers in TensorFlow Lite's schema.fbs.
const MODEL = { buffers: 4, metadata: 6 };
const METADATA = { name: 0, buffer: 1 };
const BUFFER = { data: 0 };

/**
 * Maps a `.tflite` file to the description that keras-vanilla wrote into it.
 *
 * It is JSON in the flatbuffer's `metadata` list, under the name `keras_vanilla`. Every
 * buffer of the file is seen to be whole on the way: LiteRT.js would read past the end.
 *
 * @param {Uint8Array} bytes The file.
 * @returns {Object} The description; keras_vanilla/export/description.py lists its keys.
 * @throws {TranslatorError} "not-tflite", "damaged", "not-ours" or "other-format".
 */
export function readDescription(bytes) {
  const begin = new TextDecoder('latin1').decode(bytes.subarray(4, 8));
  if (begin !== 'TFL3') {
    throw new TranslatorError('not-tflite', 'This is no .tflite file.');
  }
  const json = whole(bytes, () => descriptionIn(new Flatbuffer(bytes)));
  if (json === undefined) {
    throw new TranslatorError(
      'not-ours',
      'This .tflite file is no translator that keras-vanilla exported.',
    );
  }
  if (json.format !== FORMAT) {
    throw new TranslatorError(
      'other-format',
      `The file's format is “${json.format}”; this page reads “${FORMAT}”.`,
    );
  }
  return json;
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

function descriptionIn(file) {
  const buffers = file.tables(file.root, MODEL.buffers);
  const contents = buffers.map((buffer) => file.bytes(buffer, BUFFER.data));
  const text = new TextDecoder('utf-8', { fatal: true });
  for (const entry of file.tables(file.root, MODEL.metadata)) {
    if (text.decode(file.bytes(entry, METADATA.name)) === NAME) {
      return JSON.parse(text.decode(contents[file.uint32(entry, METADATA.buffer)]));
    }
  }
  return undefined;
}

/** The few ways of following a flatbuffer that the description takes. */
class Flatbuffer {
  constructor(bytes) {
    this.all = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.root = this.target(0);
  }

  /** Where the offset that stands at a place leads. */
  target(place) {
    return place + this.view.getUint32(place, true);
  }

  /** Where a field of a table stands; null for one that has its default. */
  field(table, number) {
    const fields = table - this.view.getInt32(table, true);
    const entry = 4 + 2 * number;
    if (entry >= this.view.getUint16(fields, true)) return null;
    const offset = this.view.getUint16(fields + entry, true);
    return offset ? table + offset : null;
  }

  uint32(table, number) {
    const place = this.field(table, number);
    return place === null ? 0 : this.view.getUint32(place, true);
  }

  /** A field of bytes or a string. */
  bytes(table, number) {
    const place = this.field(table, number);
    if (place === null) return new Uint8Array();
    const vector = this.target(place);
    const end = vector + 4 + this.view.getUint32(vector, true);
    if (end > this.all.length) throw new RangeError('The file is cut off.');
    return this.all.subarray(vector + 4, end);
  }

  /** A field that lists tables. */
  tables(table, number) {
    const place = this.field(table, number);
    if (place === null) return [];
    const vector = this.target(place);
    const length = this.view.getUint32(vector, true);
    if (length > this.all.length) throw new RangeError('The file is cut off.');
    return Array.from({ length }, (_, i) => this.target(vector + 4 + 4 * i));
  }
}
