/** Long texts, cut into sentences and smaller pieces by the browser's `Intl.Segmenter`. */

// It also cuts after abbreviations, initials and numbers, as in "Dr. Smith" or "5. Mai".
const NO_END = new RegExp(
  '(?:^|[\\s"\'“‘«([¿¡])(?:\\p{L}\\p{M}*|(?:[\\p{L}\\p{M}]+\\.)+[\\p{L}\\p{M}]+|\\p{Nd}{1,2}|' +
    'Mrs?|Ms|Dr|Prof|Rev|Gen|Sen|S[rt]|Jr|Mt|vs|No|Vol|Fig|ca|Nr|Hr|Fr|bzw|vgl|' +
    'Mme|Mlle|Art|Sra|Srta|Dott|Ing|Sig)\\.\\s*$',
  'iu',
);
// And within addresses: a sentence begins after white space, or after a mark that needs none.
const MAY_END = /(?:\s|[。！？｡။។][」』”’）"]*)$/u;
const LONGEST_WORD = 40; // before a full stop; longer ones are not abbreviations

/** Where a text can be cut in two, the best places first. */
const CUTS = [
  (text) => ends(text, /[,;:–—]\s+|[，；：、]\s*/gu), // clauses
  (text) => ends(text, /\s+/gu),
  (text) => begins(text, 'word'), // in a language that is written without spaces
  (text) => begins(text, 'grapheme'),
];

/**
 * The sentences of a text, each with the white space after it; joined, they are the text.
 *
 * @param {string} text
 * @returns {string[]}
 */
export function sentences(text) {
  const starts = [];
  for (const { index } of segments(text, 'sentence')) {
    const before = text.slice(Math.max(starts.at(-1) ?? 0, index - LONGEST_WORD), index);
    const isStart = index === 0 || (MAY_END.test(before) && !NO_END.test(before));
    if (isStart) starts.push(index);
  }
  return starts.map((start, i) => text.slice(start, starts[i + 1]));
}

/**
 * A sentence in two pieces, cut near its middle after a clause, or else between two words
 * or characters.
 *
 * @param {string} text
 * @returns {string[]} Joined, they are the text; none if it is a single character.
 */
export function halves(text) {
  for (const cuts of CUTS) {
    const places = cuts(text).filter((place) => 0 < place && place < text.length);
    if (places.length === 0) continue;
    const distance = (place) => Math.abs(2 * place - text.length);
    const cut = places.reduce((a, b) => (distance(b) < distance(a) ? b : a));
    return [text.slice(0, cut), text.slice(cut)];
  }
  return [];
}

function ends(text, pattern) {
  return Array.from(text.matchAll(pattern), (match) => match.index + match[0].length);
}

function begins(text, granularity) {
  return Array.from(segments(text, granularity), ({ index }) => index);
}

function segments(text, granularity) {
  return new Intl.Segmenter(undefined, { granularity }).segment(text);
}
