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
 * @param {function(): Promise<void>} pace As `pacer` gives it.
 * @returns {Promise<string>}
 */
export async function putMarks(plain, marks, { text, words }, pace) {
  const links = new Links(plain, words);
  const dropped = new Set(keptParts(marks).flatMap((mark) => links.of(mark)));
  await place(marks, 0, words.length, links, pace);
  const writer = new Writer(plain, text, words, dropped, pace);
  await writer.write(marks, 0, words.length);
  return writer.text;
}

function keptParts(marks) {
  return marks.flatMap((mark) => (mark.kept ? [mark] : keptParts(mark.children)));
}

/** The words of a translation in the order of their sources, so that marks find theirs fast. */
class Links {
  #plain;
  #linked; // by the end of their sources, and then by their own place `i`
  #longest = 0; // of their sources

  constructor(plain, words) {
    this.#plain = plain;
    const all = words.map(({ sourceBegin, sourceEnd }, i) => ({ sourceBegin, sourceEnd, i }));
    const linked = all.filter(({ sourceBegin, sourceEnd }) => sourceBegin < sourceEnd);
    this.#linked = linked.sort((a, b) => a.sourceEnd - b.sourceEnd || a.i - b.i);
    for (const { sourceBegin, sourceEnd } of linked) {
      this.#longest = Math.max(this.#longest, sourceEnd - sourceBegin);
    }
  }

  /** The places of the words whose source, or a letter of it, a mark marks. */
  of(mark) {
    const found = [];
    for (let place = this.#after(mark.sourceBegin); place < this.#linked.length; place++) {
      const word = this.#linked[place];
      if (word.sourceEnd - this.#longest >= mark.sourceEnd) break;
      if (this.#isMarked(word, mark)) found.push(word.i);
    }
    return found.sort((a, b) => a - b);
  }

  /** The place after the word whose source is the nearest before a mark. */
  afterNeighbour(mark, low, high) {
    if (low === high) return low;
    const isInside = ({ i }) => low <= i && i < high;
    const place = this.#after(mark.sourceBegin);
    let next = place;
    while (next < this.#linked.length && !isInside(this.#linked[next])) next++;
    if (next === this.#linked.length) return high;
    let before = place - 1;
    while (before >= 0 && !isInside(this.#linked[before])) before--;
    return before < 0 ? low : this.#linked[before].i + 1;
  }

  /** How many words have their source before a place. */
  #after(source) {
    let [low, high] = [0, this.#linked.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#linked[middle].sourceEnd <= source) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #isMarked({ sourceBegin, sourceEnd }, mark) {
    const letter = /[\p{L}\p{N}_]/u;
    const pattern = letter.test(this.#plain.slice(sourceBegin, sourceEnd)) ? letter : /\S/u;
    const begin = Math.max(sourceBegin, mark.sourceBegin);
    const end = Math.min(sourceEnd, mark.sourceEnd);
    return begin < end && pattern.test(this.#plain.slice(begin, end));
  }
}

/** Gives marks their places between `low` and `high`, and their children theirs. */
async function place(marks, low, high, links, pace) {
  for (const mark of marks) {
    await pace();
    const all = links.of(mark).filter((i) => low <= i && i < high);
    const own = mark.kept ? longestRun(all) : all;
    mark.begin = own.length > 0 ? own[0] : links.afterNeighbour(mark, low, high);
    mark.end = own.length > 0 ? own.at(-1) + 1 : mark.begin;
  }
  marks.sort((a, b) => a.begin - b.begin || a.end - b.end); // as they stand in the output
  let least = low;
  for (const mark of marks) {
    mark.begin = Math.max(mark.begin, least);
    least = mark.end = Math.max(mark.begin, mark.end);
    await place(mark.children, mark.begin, mark.end, links, pace);
  }
}

function longestRun(places) {
  const runs = [[]];
  for (const each of places) {
    if (runs.at(-1).at(-1) + 1 === each) runs.at(-1).push(each);
    else runs.push([each]);
  }
  return runs.reduce((best, run) => (run.length > best.length ? run : best));
}

/** Writes words and marks, with the white space that is between the words. */
class Writer {
  text = '';
  #space = '';
  #isFresh = true; // nothing is written yet: no space either

  constructor(plain, translation, words, dropped, pace) {
    Object.assign(this, { plain, translation, words, dropped, pace });
  }

  /** The words from `low` to `high`, with the marks among them. */
  async write(marks, low, high) {
    let begin = low;
    for (const mark of marks) {
      await this.pace();
      this.#writeWords(begin, mark.begin, low);
      await this.#writeMark(mark, low);
      begin = mark.end;
    }
    this.#writeWords(begin, high, low);
  }

  #writeWords(begin, end, low) {
    for (let i = begin; i < end; i++) {
      this.#addGap(i, low);
      if (!this.dropped.has(i)) this.#add(this.#between(i, i + 1));
    }
  }

  async #writeMark(mark, low) {
    const isAdded = mark.begin === mark.end && mark.hasText;
    if (isAdded) this.#space ||= ' ';
    else if (mark.begin < mark.end) this.#addGap(mark.begin, low);
    if (mark.kept) this.#add(this.#withPunctuation(mark));
    else if (mark.closing) await this.#addElement(mark);
    else this.text += mark.opening;
    if (isAdded) this.#space = ' ';
  }

  async #addElement(mark) {
    if (mark.hasText || mark.begin < mark.end) this.#flush();
    const wasFresh = this.#isFresh;
    this.#isFresh = true;
    this.text += mark.opening;
    await this.write(mark.children, mark.begin, mark.end);
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
