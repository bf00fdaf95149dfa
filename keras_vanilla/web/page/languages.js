/** Language tags, matched in the manner of `Intl`: "en-US" is served by "en". */

/**
 * A tag as `Intl` writes it: "EN-us" is "en-US".
 *
 * @param {string} tag
 * @throws {RangeError} If it is not a BCP 47 language tag.
 */
export function canonical(tag) {
  return Intl.getCanonicalLocales(tag)[0];
}

/**
 * How well a language serves another one.
 *
 * @param {string} offered A canonical tag.
 * @param {string} wanted A canonical tag.
 * @returns {number} 4 for the same language, script and region as they are written, 3 as they
 *     are likely, 2 for the language in general, 1 for another region of it, and 0 for another
 *     language or script.
 */
export function fit(offered, wanted) {
  const [a, b] = [offered, wanted].map((tag) => new Intl.Locale(tag));
  const [likelyA, likelyB] = [a.maximize(), b.maximize()]; // "zh-TW" is "zh-Hant-TW"
  if (a.language !== b.language || likelyA.script !== likelyB.script) return 0;
  if (a.baseName === b.baseName) return 4;
  if (likelyA.region === likelyB.region) return 3;
  return a.region ? 1 : 2;
}

/**
 * The pair that serves two languages best, the first of several; undefined if there is none.
 *
 * @param {{sourceLanguage: string, targetLanguage: string}[]} pairs
 * @param {{sourceLanguage: string, targetLanguage: string}} wanted
 */
export function bestPair(pairs, wanted) {
  let best;
  let most = 0;
  for (const pair of pairs) {
    const source = fit(pair.sourceLanguage, wanted.sourceLanguage);
    const target = fit(pair.targetLanguage, wanted.targetLanguage);
    if (source && target && source + target > most) [best, most] = [pair, source + target];
  }
  return best;
}
