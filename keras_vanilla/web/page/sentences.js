/** Long texts, cut into sentences by the browser's own `Intl.Segmenter`. */

// It also cuts after abbreviations, initials and numbers, as in "Dr. Smith" or "5. Mai".
const NO_END = new RegExp(
  '(?:^|[\\s"\'“‘«([¿¡])(?:\\p{L}|(?:\\p{L}+\\.)+\\p{L}+|\\p{Nd}{1,2}|' +
    'Mrs?|Ms|Dr|Prof|Rev|Gen|Sen|S[rt]|Jr|Mt|vs|No|Vol|Fig|ca|Nr|Hr|Fr|bzw|vgl|' +
    'Mme|Mlle|Art|Sra|Srta|Dott|Ing|Sig)\\.\\s*$',
  'iu',
);

/**
 * The sentences of a text, each with the white space after it; joined, they are the text.
 *
 * @param {string} text
 * @returns {string[]}
 */
export function sentences(text) {
  const segmenter = new Intl.Segmenter(undefined, { granularity: 'sentence' });
  const segments = [];
  for (const { segment } of segmenter.segment(text)) {
    const joins = segments.length && NO_END.test(segments.at(-1));
    segments.push(joins ? segments.pop() + segment : segment);
  }
  return segments;
}
