/** The words of a translation, each with the word of the source that it translates. */

// Han, Kana, Thai, Lao, Khmer and Burmese are written without spaces: there a token
// counts as a word.
const UNSPACED =
  /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u2e80-\u2fdf\u3001-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9d\u{20000}-\u{3ffff}]/u;
const NONE = [0, 0];

/**
 * The words of one run of the model; none if the file does not say what its tokens are.
 *
 * @param {string} source As the model received it.
 * @param {string} translation
 * @param {{ends: Int32Array, spans?: Int32Array, confidence?: Float32Array}} [tokens] Where
 *     the bytes of each token end; the bytes of the source that it attends to most, a pair
 *     for each token; and its probability.
 * @returns {import('./translate.js').Word[]}
 */
export function wordsOfSentence(source, translation, tokens) {
  if (!tokens) return [];
  const placed = placedTokens(source, translation, tokens);
  return units(translation, new Set(placed.map(({ end }) => end))).map(([begin, end]) =>
    word(translation, begin, end, placed, tokens.spans !== undefined),
  );
}

/** A word of a sentence as one of the text that the sentence is in. */
export function moved(word, shift, sourceShift) {
  const { begin, end, sourceBegin, sourceEnd, confidence } = word;
  return {
    begin: begin + shift,
    end: end + shift,
    sourceBegin: sourceBegin === null ? null : sourceBegin + sourceShift,
    sourceEnd: sourceEnd === null ? null : sourceEnd + sourceShift,
    confidence,
  };
}

/** The tokens, in indices of the strings instead of bytes. */
function placedTokens(source, translation, { ends, spans, confidence }) {
  const place = indices(translation);
  const sourcePlace = indices(source);
  const tokens = Array.from(ends, (end, i) => ({
    begin: i === 0 ? 0 : place(ends[i - 1]),
    end: place(end),
    source: spans
      ? sourceWord(source, sourcePlace(spans[2 * i]), sourcePlace(spans[2 * i + 1]))
      : NONE,
    confidence: confidence?.[i] ?? null,
  }));
  return tokens.filter(({ begin, end }) => begin < end);
}

/** A function from bytes of UTF-8 to the index after the last character before them. */
function indices(text) {
  const map = [0];
  let index = 0;
  for (const letter of text) {
    const before = index;
    index += letter.length;
    for (let i = bytes(letter); i > 1; i--) map.push(before);
    map.push(index);
  }
  return (octet) => map[Math.min(octet, map.length - 1)];
}

function bytes(text) {
  return new TextEncoder().encode(text).length;
}

/** The word around a part of a text, as [begin, end]; [0, 0] for none. */
function sourceWord(text, begin, end) {
  if (end === 0) return NONE;
  while (begin < text.length && /\s/u.test(text[begin])) begin++;
  end = Math.max(begin, begin + text.slice(begin, end).trimEnd().length);
  if (UNSPACED.test(text.slice(begin, end))) return [begin, end];
  begin -= /\S*$/u.exec(afterUnspaced(text.slice(0, begin)))[0].length;
  end += beforeUnspaced(/^\S*/u.exec(text.slice(end))[0]).length;
  return begin < end ? [begin, end] : NONE;
}

/** What follows the last character of a script without spaces. */
function afterUnspaced(text) {
  const letters = Array.from(text);
  return letters.slice(letters.findLastIndex((letter) => UNSPACED.test(letter)) + 1).join('');
}

function beforeUnspaced(text) {
  const letters = Array.from(text);
  const first = letters.findIndex((letter) => UNSPACED.test(letter));
  return first < 0 ? text : letters.slice(0, first).join('');
}

/** Where the words of a translation begin and end. */
function units(text, cuts) {
  const places = [];
  for (const { index, 0: run } of text.matchAll(/\S+/gu)) {
    let begin = index;
    let last = '';
    let cut = index;
    for (const letter of run) {
      if (cut > begin && cuts.has(cut) && UNSPACED.test(last + letter)) {
        places.push([begin, cut]);
        begin = cut;
      }
      last = letter;
      cut += letter.length;
    }
    places.push([begin, index + run.length]);
  }
  return places;
}

function word(text, begin, end, tokens, linked) {
  const own = tokens.filter((token) => token.begin < end && begin < token.end);
  const given = own.map(({ confidence }) => confidence).filter((each) => each !== null);
  const [sourceBegin, sourceEnd] = linked ? elected(text, begin, end, own) : [null, null];
  const confidence = given.length > 0 ? Math.min(...given) : null;
  return { begin, end, sourceBegin, sourceEnd, confidence };
}

/** The source to which most bytes of a word attend. */
function elected(text, begin, end, tokens) {
  const votes = new Map();
  for (const token of tokens.filter(({ source }) => source[1] > 0)) {
    const key = token.source.join();
    const part = text.slice(Math.max(begin, token.begin), Math.min(end, token.end));
    const { count } = votes.get(key) ?? { count: 0 };
    votes.set(key, { source: token.source, count: count + bytes(part) });
  }
  const most = Math.max(...Array.from(votes.values(), ({ count }) => count));
  return [...votes.values()].find(({ count }) => count === most)?.source ?? NONE;
}
