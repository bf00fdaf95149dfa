/** The translation on the page, and what there is to say about it. */

import { $ } from './element.js';
import { offerWords, wordNodes } from './word_links.js';

/**
 * Shows a piece as soon as it is translated; what stood there before goes.
 *
 * @param {Object} piece As `translatePieces` yields it.
 * @param {number} place How many pieces are before it.
 */
export function showPiece(piece, place) {
  const node = nodeOf(piece);
  if ($('translation').childNodes[place]?.isEqualNode(node)) return;
  keepFirst(place);
  $('translation').append(node);
}

/** Shows what there is to say when all pieces are translated. */
export function showAll(pieces, translator) {
  keepFirst(pieces.length);
  offerWords(pieces);
  const translations = pieces.filter((piece) => piece.text);
  $('copy').hidden = translations.length === 0;
  $('link').hidden = $('clear').hidden = $('source').value === '';
  say('time', timeOf(translations));
  say('doubts', doubtful(translations));
  say('too-long', tooLong(pieces, translator));
  say('problem', [problemOf(pieces), cutOff(pieces, translator)].join(' ').trim());
  $('problem').hidden = $('problem').textContent === '';
}

/** Changes a text only if it is another one: a screen reader reads it again each time. */
function say(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

function keepFirst(count) {
  const nodes = $('translation').childNodes;
  while (nodes.length > count) nodes[nodes.length - 1].remove();
}

/**
 * A piece's translation, with an ellipsis if it is cut off; or its source, underlined, if
 * there is none.
 */
function nodeOf({ before, source, text, words = [], truncated, error }) {
  if (!error && !truncated && words.length === 0) return new Text(before + text);
  const node = document.createElement('span');
  const part = document.createElement(error ? 'mark' : 'span');
  part.className = truncated ? 'cut-off' : '';
  part.append(...(error ? [source] : wordNodes(text, words)));
  node.append(before, part);
  return node;
}

/** The number of sentences that some pieces are of. */
function sentencesOf(pieces) {
  return new Set(pieces.map(({ sentence }) => sentence)).size;
}

function timeOf(translations) {
  if (translations.length === 0) return '';
  const count = sentencesOf(translations);
  const sum = translations.reduce((total, { milliseconds }) => total + milliseconds, 0);
  const each = Math.max(1, Math.round(sum / count));
  return count === 1 ? `${each} ms` : `${count} sentences, ${each} ms each`;
}

const DOUBTS = {
  unlikely: 'the model is unsure',
  missing: 'a number or an address is missing',
  unchanged: 'it is the same as the text',
  unknown: 'the text has letters that the model does not know',
};

/** One sentence about the pieces that something speaks against. */
function doubtful(pieces) {
  const doubted = pieces.filter(({ doubts }) => doubts.length > 0);
  if (doubted.length === 0) return '';
  const found = new Set(doubted.flatMap(({ doubts }) => doubts));
  const reasons = Object.keys(DOUBTS).filter((doubt) => found.has(doubt));
  const [count, all] = [doubted, pieces].map(sentencesOf);
  const where = all === 1 ? '' : ` (${count} of ${all} sentences)`;
  return `Doubtful${where}: ${reasons.map((doubt) => DOUBTS[doubt]).join('; ')}.`;
}

function problemOf(pieces) {
  const error = pieces.find((piece) => piece.error)?.error;
  return error ? `The underlined text is left as it is. ${error.message}` : '';
}

function cutOff(pieces, { description }) {
  const count = pieces.filter((piece) => piece.truncated).length;
  if (count === 0) return '';
  const limit = `at most ${description.max_output_tokens} tokens`;
  return count === 1
    ? `Cut off at “…”: a translation was too long; this translator gives ${limit}.`
    : `Cut off at “…”: ${count} translations were too long; this translator gives ${limit}.`;
}

/** A sentence about the sentences that are in several pieces. */
function tooLong(pieces, { maxBytes, description }) {
  const isCut = ({ sentence }, i) => i > 0 && sentence === pieces[i - 1].sentence;
  const count = sentencesOf(pieces.filter(isCut));
  if (count === 0) return '';
  const limits = `${maxBytes} bytes or ${description.max_source_tokens} tokens`;
  return count === 1
    ? `Too long: a sentence has more than ${limits}. It is translated in parts.`
    : `Too long: ${count} sentences have more than ${limits}. They are translated in parts.`;
}
