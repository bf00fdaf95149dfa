/** The pieces of target ids, and the text that they make. */

const BYTE = /^<0x([0-9A-F]{2})>$/; // a piece of one byte, where no other was found

/** The ids and pieces of a model, as its file names them. */
export class Vocabulary {
  /**
   * @param {{start_id: number, pad_id: number, pieces: string[]}} entry
   * @param {number} endId
   */
  constructor({ start_id: startId, pad_id: padId, pieces }, endId) {
    this.startId = startId;
    this.endId = endId;
    this.pieces = pieces;
    this.silent = new Set([startId, endId, padId]);
  }

  /** The name of an id for a person: “▁Hund” is “Hund”, and what is no text in brackets. */
  name(id) {
    if (id === this.endId) return '⟨end⟩';
    if (id === this.startId) return '⟨start⟩';
    return this.pieces[id].replace('▁', '') || '␣';
  }

  /** Whether an id begins a word. */
  beginsWord(id) {
    return this.pieces[id].startsWith('▁') || this.silent.has(id);
  }

  /** The text of ids, as SentencePiece joins pieces. */
  text(ids) {
    const octets = [];
    for (const id of ids) {
      if (this.silent.has(id)) continue;
      const piece = this.pieces[id];
      const byte = BYTE.exec(piece);
      if (byte) octets.push(Number.parseInt(byte[1], 16));
      else octets.push(...new TextEncoder().encode(piece.replaceAll('▁', ' ')));
    }
    return new TextDecoder().decode(Uint8Array.from(octets)).replace(/^ /, '');
  }
}
