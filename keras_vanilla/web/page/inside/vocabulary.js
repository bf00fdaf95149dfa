/** The pieces of target ids, and the text that they make. */

const BYTE = /^<0x([0-9A-F]{2})>$/; // a piece of one byte, where no other was found

/** The name of a piece that is a space, and nothing else. */
export const SPACE = '⟨space⟩';

/** The ids and pieces of a model, as its file names them. */
export class Vocabulary {
  #bytes; // of each id, the byte that it is, if it is one

  /**
   * @param {{start_id: number, pad_id: number, pieces: string[]}} entry
   * @param {number} endId
   */
  constructor({ start_id: startId, pad_id: padId, pieces }, endId) {
    this.startId = startId;
    this.endId = endId;
    this.pieces = pieces;
    this.silent = new Set([startId, endId, padId]);
    this.#bytes = pieces.map((piece) => {
      const digits = BYTE.exec(piece)?.[1];
      return digits && Number.parseInt(digits, 16);
    });
  }

  /** The name of an id for a person: “▁Hund” is “Hund”, and what is no text in brackets. */
  name(id) {
    if (id === this.endId) return '⟨end⟩';
    if (id === this.startId) return '⟨start⟩';
    if (this.#bytes[id] !== undefined) return byteName(this.#bytes[id]);
    return this.pieces[id].replaceAll('▁', ' ').trim() || SPACE;
  }

  /** Whether an id is the code of a language, as a multilingual model has them. */
  isCode(id) {
    return /^>>.+<<$/.test(this.pieces[id]);
  }

  /** Whether an id begins a word. */
  beginsWord(id) {
    return this.pieces[id].startsWith('▁') || this.silent.has(id);
  }

  /** The text of ids, as SentencePiece joins pieces; bytes that make no character by name. */
  text(ids) {
    const { text, open } = this.#read(ids);
    return (text + open.map(byteName).join('')).replace(/^ /, '');
  }

  /**
   * Makes ids impossible that would leave a part of a character.
   *
   * @param {Float64Array} logProbs Of the id that follows `ids`.
   * @param {number[]} ids
   * @param {number} room How many more ids may follow that one.
   */
  withWholeCharacters(logProbs, ids, room) {
    const { open } = this.#read(ids);
    return logProbs.map((logProb, id) => {
      const byte = this.#bytes[id];
      const octets = [...open, byte];
      const isPossible =
        byte === undefined
          ? open.length === 0 && (id === this.endId || !this.silent.has(id))
          : isBeginning(octets) && (open.length > 0 || missing(octets) <= room);
      return isPossible ? logProb : -Infinity;
    });
  }

  /** The text of ids, and the bytes at its end that are not a whole character yet. */
  #read(ids) {
    let text = '';
    let open = [];
    const close = () => {
      text += open.map(byteName).join('');
      open = [];
    };
    for (const id of ids.filter((id) => !this.silent.has(id))) {
      const byte = this.#bytes[id];
      if (byte === undefined || !isBeginning([...open, byte])) close();
      if (byte === undefined) {
        text += this.pieces[id].replaceAll('▁', ' ');
      } else {
        open.push(byte);
        if (!isBeginning(open)) close();
      }
      if (open.length > 0 && missing(open) === 0) {
        text += new TextDecoder().decode(Uint8Array.from(open));
        open = [];
      }
    }
    return { text, open };
  }
}

function byteName(byte) {
  return `⟨byte ${byte.toString(16).toUpperCase().padStart(2, '0')}⟩`;
}

/** Whether octets are a character in UTF-8, or can become one. */
function isBeginning(octets) {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(octets), { stream: true });
    return true;
  } catch {
    return false;
  }
}

/** How many octets a character needs besides those at its beginning. */
function missing([first, ...others]) {
  const length = [0xf0, 0xe0, 0xc0].findIndex((least) => first >= least);
  return (length < 0 ? 1 : 4 - length) - 1 - others.length;
}
