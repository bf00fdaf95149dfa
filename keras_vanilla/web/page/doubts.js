/** What speaks against a translation: four rules, the same in every caller of a file. */

const LEAST_PROBABILITY = 0.6;
const LEAST_KNOWN = 0.5;
const ADDRESS =
  /(?:https?:\/\/|www\.)[^\s<>]*[^\s<>.,;:!?'"“”’»()[\]]|[^\s@<>()[\],;:'"“”«]+@[^\s@<>]+\.[A-Za-z]+/g;
const THOUSANDS = /(?<![0-9])[0-9]{1,3}(?:[.,'’ \u00a0\u202f][0-9]{3})+(?![0-9])/g;
// Above twelve: smaller ones may be words, or hours of the afternoon.
const NUMBER = /(?<![0-9])(?:[0-9]{3,}|[2-9][0-9]|1[3-9])(?![0-9])/g;

/**
 * Names what speaks against the translation of a sentence; a doubt is no proof.
 *
 * "unlikely": the tokens' probabilities have a geometric mean below 0.6; "missing": a number
 * above 12, a web or an e-mail address is not in it; "unchanged": its letters are those of
 * the source; "unknown": the vocabulary has less than half of the source.
 *
 * @param {string} source
 * @param {string} translation
 * @param {{probability?: number, known?: number}} [outputs] Of the file; those of versions
 *     up to 0.8.0 do not have them.
 * @returns {import('./translate.js').Doubt[]}
 */
export function doubtsOf(source, translation, { probability, known } = {}) {
  const written = numbers(translation);
  const isThere =
    (source.match(ADDRESS) ?? []).every((address) => translation.includes(address)) &&
    numbers(source).every((number) => written.includes(number));
  const hasWords = letters(source.replace(ADDRESS, '')) !== '';
  const found = {
    unlikely: probability < LEAST_PROBABILITY,
    missing: !isThere,
    unchanged: hasWords && letters(source) === letters(translation),
    unknown: known < LEAST_KNOWN,
  };
  return Object.keys(found).filter((doubt) => found[doubt]);
}

/** The numbers, as they are written without separators of thousands. */
function numbers(text) {
  const plain = text.replace(THOUSANDS, (number) => number.replace(/[^0-9]/g, ''));
  return plain.match(NUMBER) ?? [];
}

const letters = (text) => text.replace(/\P{L}+/gu, '').toLowerCase();
