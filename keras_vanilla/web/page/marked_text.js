/**
 * Puts inline tags, such as `<b>`, and parts that stay as they are into a translation.
 *
 * Every tag occurs once; pairs are balanced and nested as they were. Siblings never overlap.
 * What marks no word follows the translation of the word before it.
 */

// What may enclose a number or an address in its sentence.
const BEFORE = /^["'([{“‘„«¿¡]*/u;
const AFTER = /["')\]}”’».,;:!?…。，、！？]*$/u;
const PUNCTUATION = /[^\p{L}\p{M}\p{N}_\s]/gu;

/**
 * The translation with marks.
 *
 * @param {string} plain The text without marks, and `marks`, as `readMarks` gives them.
 * @param {Object[]} marks
 * @param {{text: string, words: import('./translate.js').Word[]}} result Of `plain`.
 */
export function putMarks(plain, marks, { text, words }) {
  const links = words.map((word) => link(plain, word));
  const kept = keptParts(marks);
  const dropped = links.map((isMarked) => kept.some(isMarked));
  place(marks, 0, words.length, words, links);
  const writer = new Writer(plain, text, words, dropped);
  writer.write(marks, 0, words.length);
  return writer.text;
}

function keptParts(marks) {
  return marks.flatMap((mark) => (mark.kept ? [mark] : keptParts(mark.children)));
}

/** A function of a mark: whether it marks the word's source, or a letter of it. */
function link(plain, { sourceBegin, sourceEnd }) {
  const letter = /[\p{L}\p{N}_]/u;
  const pattern = letter.test(plain.slice(sourceBegin, sourceEnd)) ? letter : /\S/u;
  return (mark) => {
    const begin = Math.max(sourceBegin, mark.sourceBegin);
    const end = Math.min(sourceEnd, mark.sourceEnd);
    return begin < end && pattern.test(plain.slice(begin, end));
  };
}

/** Gives marks their places between `low` and `high`, and their children theirs. */
function place(marks, low, high, words, links) {
  for (const mark of marks) {
    const all = range(low, high).filter((i) => links[i](mark));
    const own = mark.kept ? longestRun(all) : all;
    mark.begin = own.length > 0 ? own[0] : afterNeighbour(mark, low, high, words);
    mark.end = own.length > 0 ? own.at(-1) + 1 : mark.begin;
  }
  marks.sort((a, b) => a.begin - b.begin || a.end - b.end); // as they stand in the output
  let least = low;
  for (const mark of marks) {
    mark.begin = Math.max(mark.begin, least);
    least = mark.end = Math.max(mark.begin, mark.end);
    place(mark.children, mark.begin, mark.end, words, links);
  }
}

function range(low, high) {
  return Array.from({ length: high - low }, (_, i) => low + i);
}

function longestRun(places) {
  const runs = [[]];
  for (const each of places) {
    if (runs.at(-1).at(-1) + 1 === each) runs.at(-1).push(each);
    else runs.push([each]);
  }
  return runs.reduce((best, run) => (run.length > best.length ? run : best));
}

/** The place after the word whose source is the nearest before a mark. */
function afterNeighbour(mark, low, high, words) {
  const linked = range(low, high).filter((i) => words[i].sourceBegin < words[i].sourceEnd);
  const before = linked.filter((i) => words[i].sourceEnd <= mark.sourceBegin);
  if (before.length === linked.length) return high;
  const nearest = Math.max(...before.map((i) => words[i].sourceEnd));
  return (before.findLast((i) => words[i].sourceEnd === nearest) ?? low - 1) + 1;
}

/** Writes words and marks, with the white space that is between the words. */
class Writer {
  text = '';
  #space = '';
  #isFresh = true; // nothing is written yet: no space either

  constructor(plain, translation, words, dropped) {
    Object.assign(this, { plain, translation, words, dropped });
  }

  /** The words from `low` to `high`, with the marks among them. */
  write(marks, low, high) {
    let begin = low;
    for (const mark of marks) {
      this.#writeWords(begin, mark.begin, low);
      this.#writeMark(mark, low);
      begin = mark.end;
    }
    this.#writeWords(begin, high, low);
  }

  #writeWords(begin, end, low) {
    for (let i = begin; i < end; i++) {
      this.#addGap(i, low);
      if (!this.dropped[i]) this.#add(this.#between(i, i + 1));
    }
  }

  #writeMark(mark, low) {
    const isAdded = mark.begin === mark.end && mark.hasText;
    if (isAdded) this.#space ||= ' ';
    else if (mark.begin < mark.end) this.#addGap(mark.begin, low);
    if (mark.kept) this.#add(this.#withPunctuation(mark));
    else if (mark.closing) this.#addElement(mark);
    else this.text += mark.opening;
    if (isAdded) this.#space = ' ';
  }

  #addElement(mark) {
    if (mark.hasText || mark.begin < mark.end) this.#flush();
    const wasFresh = this.#isFresh;
    this.#isFresh = true;
    this.text += mark.opening;
    this.write(mark.children, mark.begin, mark.end);
    this.text += mark.closing;
    this.#isFresh &&= wasFresh;
  }

  /** A kept part, with what its word has before and after it, as in “(3.14)”. */
  #withPunctuation({ opening, begin, end, sourceBegin, sourceEnd }) {
    if (begin === end) return opening;
    const own = this.#between(begin, end);
    const [before, after, another] = own.split(opening);
    const around = (before + after).replace(PUNCTUATION, '');
    if (after !== undefined && another === undefined && around === '') return own;
    const isAlone = (side) => side.trim() === '';
    return (
      (isAlone(this.plain.slice(0, sourceBegin).slice(-1)) ? '' : BEFORE.exec(own)[0]) +
      opening +
      (isAlone(this.plain.slice(sourceEnd, sourceEnd + 1)) ? '' : AFTER.exec(own)[0])
    );
  }

  #between(begin, end) {
    return this.translation.slice(this.words[begin].begin, this.words[end - 1].end);
  }

  /** The white space before a word; of several, the one with a line's end. */
  #addGap(i, low) {
    if (i <= low) return;
    const gap = this.translation.slice(this.words[i - 1].end, this.words[i].begin);
    const lines = (space) => space.split('\n').length;
    const difference = lines(gap) - lines(this.#space);
    if (difference > 0 || (difference === 0 && gap.length > this.#space.length)) {
      this.#space = gap;
    }
  }

  #add(text) {
    this.#flush();
    this.text += text;
    this.#isFresh = false;
  }

  #flush() {
    if (!this.#isFresh) this.text += this.#space;
    this.#space = '';
  }
}
