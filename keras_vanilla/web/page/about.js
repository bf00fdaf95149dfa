/** The description of a model, in words. */

/** A BCP-47 tag's language by name: "German" for "de". */
export function languageName(tag) {
  try {
    return new Intl.DisplayNames('en', { type: 'language' }).of(tag);
  } catch {
    return tag;
  }
}

/** What a model translates: its name, and its languages where the name lacks them. */
export function titleOf({ name, source_language: from, target_language: to }) {
  const title = name ?? 'Translator';
  if (!from || !to) return title;
  const languages = [from, to].map(languageName);
  const isSaid = languages.every((language) => title.includes(language));
  return isSaid ? title : `${title}, ${languages.join(' to ')}`;
}

/**
 * What the file says about itself, the most important first.
 *
 * @param {Object} description As `readDescription` returns it.
 * @returns {[string, string][]} Names and values; values that are missing are "not stated".
 */
export function rows(description) {
  const { source_language: from, target_language: to, ...about } = description;
  const languages = from && to && `${languageName(from)} to ${languageName(to)}`;
  const precision = about.quantize ?? 'float32';
  return [
    ['Languages', languages ?? 'not stated'],
    [
      'A sentence takes',
      `at most ${about.max_bytes} bytes and ${about.max_source_tokens} tokens, and gives ` +
        `at most ${about.max_output_tokens} tokens`,
    ],
    ['Search', about.beam_size > 1 ? `${about.beam_size} beams` : 'greedy'],
    ['Size', `${about.parameters?.toLocaleString('en')} parameters, ${precision}`],
    ['Written by', `keras_vanilla ${about.version}`],
    ...(about.converted_from ? [['Converted from', about.converted_from]] : []),
    ['Model license', about.model_license ?? 'not stated'],
    ['Trained on', about.data ?? 'not stated'],
    ['Data license', about.data_license ?? 'not stated'],
  ];
}
