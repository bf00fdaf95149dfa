/** Named bytes inside a `.tflite` file: its metadata, read without TensorFlow Lite. */

// The fields' numbers in TensorFlow Lite's schema.fbs.
const MODEL = { buffers: 4, metadata: 6 };
const METADATA = { name: 0, buffer: 1 };
const BUFFER = { data: 0 };

/**
 * Maps a `.tflite` file to its entries of metadata.
 *
 * Every buffer of the file is seen to be whole on the way: LiteRT.js would read past the
 * end.
 *
 * @param {Uint8Array} bytes The file.
 * @returns {Map<string, Uint8Array>} The bytes of each entry by its name.
 * @throws {RangeError|TypeError} Where an offset leads outside the file.
 */
export function readMetadata(bytes) {
  const file = new Flatbuffer(bytes);
  const buffers = file.tables(file.root, MODEL.buffers);
  const contents = buffers.map((buffer) => file.bytes(buffer, BUFFER.data));
  const text = new TextDecoder('utf-8', { fatal: true });
  const entries = new Map();
  for (const entry of file.tables(file.root, MODEL.metadata)) {
    const number = file.uint32(entry, METADATA.buffer);
    if (number >= contents.length) throw new RangeError(`There is no buffer ${number}.`);
    entries.set(text.decode(file.bytes(entry, METADATA.name)), contents[number]);
  }
  return entries;
}

/** The few ways of following a flatbuffer that its metadata takes. */
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
