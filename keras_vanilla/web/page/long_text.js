/** Texts of any length: each sentence is translated by itself, and cut if it is too long. */

import { pacer } from './pace.js';
import { halves, sentences } from './sentences.js';

const TOO_LONG = ['too-long', 'too-many-tokens'];
const OF_ONE_PIECE = [...TOO_LONG, 'damaged', 'failed']; // the next piece may be translated

/**
 * Yields the translation of a text piece by piece, each as soon as it is there.
 *
 * A piece has its `source`, the place where it begins in the text, the number of its
 * `sentence`, the white space `before` its translation, and what `translate` resolves with,
 * or the `error` it rejects with. The pieces of one sentence that is too long have the same
 * number.
 *
 * @param {string} text
 * @param {function(string): Promise<Object>} translate As `Translator.translateSentence`.
 * @param {function(): Promise<void>} [pace] As `pacer` gives it.
 * @throws Where `translate` rejects because nothing more is to be translated.
 */
export async function* translatePieces(text, translate, pace = pacer()) {
  let space = '';
  let last;
  let end = 0;
  let sentence = 0;
  for await (const long of sentencesOfLines(text, pace)) {
    for await (const { source, ...result } of cutToFit(long, translate, pace)) {
      const body = source.trim();
      const begin = end + source.indexOf(body);
      end += source.length;
      space += source.slice(0, source.indexOf(body));
      if (body) {
        const before = space || spaceAfter(last);
        yield { source: body, begin, sentence, before, ...result };
        last = result.text ?? body;
        space = '';
      }
      space += source.slice(source.indexOf(body) + body.length);
    }
    sentence += 1;
  }
}

async function* sentencesOfLines(text, pace) {
  let end = 0;
  for (let begin = 0; begin < text.length; begin = end) {
    end = text.indexOf('\n', begin) + 1 || text.length;
    yield* sentences(text.slice(begin, end), pace);
  }
}

/** The pieces of a sentence, each in as many as it takes to translate it. */
async function* cutToFit(source, translate, pace) {
  await pace();
  const body = source.trim();
  const result = body ? await translate(body).catch(errorOfPiece) : {};
  const pieces = TOO_LONG.includes(result.error?.code) ? halves(source) : [];
  for (const piece of pieces) yield* cutToFit(piece, translate, pace);
  if (pieces.length === 0) yield { source, ...result };
}

function errorOfPiece(error) {
  // A signal's reason may be anything, null too.
  if (!OF_ONE_PIECE.includes(error?.code)) throw error;
  return { error };
}

/** The space between sentences where the source has none: Chinese and Japanese need none. */
function spaceAfter(translation) {
  return !translation || translation.at(-1) >= '\u3000' ? '' : ' ';
}
