/** Long texts, cut into sentences: keras_vanilla/text/sentences.py, which says why. */

const LETTER = '[\\p{L}\\p{N}_]';
const END = new RegExp(
  `[.!?…؟।]["'”’»)\\]]*\\s+(?=["'“‘«(\\[¿¡]*(${LETTER}))|[。！？][」』”’）]*\\s*(?=\\S)`,
  'gu',
);
const OPENING = /^["'“‘«([¿¡]+/u;
const SHORT = new RegExp(`^(?:${LETTER}|${LETTER}+(?:\\.${LETTER}+)+|\\p{Nd}{1,2})$`, 'u');
const ABBREVIATIONS = new Set(
  (
    'mr mrs ms dr prof rev gen sen sr jr st mt vs no vol fig ca nr hr fr bzw vgl ' +
    'mme mlle mm art sra srta dott ing sig'
  ).split(' '),
);
const LONGEST_WORD = 40; // that is looked at

/**
 * The sentences of a text, each with the white space after it; joined, they are the text.
 *
 * @param {string} text
 * @returns {string[]}
 */
export function sentences(text) {
  const ends = [...text.matchAll(END)].filter((end) => isEnd(text, end));
  const cuts = [0, ...ends.map((end) => end.index + end[0].length), text.length];
  return cuts.slice(1).map((cut, i) => text.slice(cuts[i], cut)).filter(Boolean);
}

function isEnd(text, end) {
  const following = end[1];
  if (following === undefined) return true; // the mark was Chinese or Japanese
  if (/\p{Lowercase}/u.test(following)) return false;
  if (end[0][0] !== '.') return true;
  const before = text.slice(Math.max(0, end.index - LONGEST_WORD), end.index);
  const word = (before.match(/\S+/gu) ?? ['']).at(-1).replace(OPENING, '');
  return !(SHORT.test(word) || ABBREVIATIONS.has(word.toLowerCase()));
}
