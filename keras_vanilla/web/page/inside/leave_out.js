/** What a piece depends on: its probability with each word of the sentence left out. */

import { $, make } from '../element.js';
import { moveByArrows, percent, quoted, replaceRow } from './pieces.js';

const WORD = /[\p{L}\p{M}\p{N}]+(?:['’-][\p{L}\p{M}\p{N}]+)*/gu; // without the marks around it

/** Makes rows answer to clicks; `take` gets the sentence without the row's word. */
export function addWithout(take) {
  moveByArrows($('without'));
  $('without').addEventListener('click', ({ target }) => {
    const button = target.closest('button');
    if (button) take(button.dataset.rest);
  });
}

/**
 * Computes and shows the probability of an id without each word, the lowest first.
 *
 * @param {InsideModel} model
 * @param {Sentence} sentence
 * @param {number[]} before The ids before it.
 * @param {number} id
 * @param {function(): boolean} wanted Whether it still is; if not, nothing is shown.
 */
export async function showWithout(model, sentence, before, id, wanted) {
  const found = [];
  for (const { word, rest } of withoutEach(sentence)) {
    const logProb = await model.logProb(rest, before, id);
    if (!wanted()) return;
    found.push({ word, rest, share: Math.exp(logProb) });
  }
  found.sort((one, other) => one.share - other.share);
  const whole = Math.exp(await model.logProb(sentence.text, before, id));
  const name = quoted(model.vocabulary.name(id));
  const rows = found.map(({ word, rest, share }) => row(`without ${quoted(word)}`, share, rest));
  replaceRow($('without'), [row(`${name} in the whole sentence`, whole), ...rows]);
  $('decides').textContent = found.length > 0 ? decides(name, whole, found[0]) : '';
  $('without').ariaBusy = 'false';
}

/** A sentence about the word without which the piece is least probable. */
export function decides(name, whole, { word, share }) {
  if (share >= whole / 2) {
    return `No single word decides ${name}: whichever is left out, it keeps at least `
      + `${percent(share)}.`;
  }
  return `${quoted(word)} matters most: without it, ${name} has ${percent(share)} instead of `
    + `${percent(whole)}.`;
}

/** The sentence without each of its words, or without each piece where it is one word. */
export function withoutEach({ text, tokens }) {
  const words = Array.from(text.matchAll(WORD), ({ 0: word, index }) => {
    return { name: word, begin: index, end: index + word.length };
  });
  const parts = words.length > 1 ? words : tokens.filter(({ begin, end }) => end > begin);
  return parts.map(({ name, begin, end }) => {
    const before = text.slice(0, begin).trimEnd(); // what follows has a space of its own, or is a mark
    const rest = (before + text.slice(end)).replace(/\s+/gu, ' ').trim();
    return { word: name, rest };
  });
}

/** A row; with a `rest`, the sentence without the word, it is a button. */
function row(label, share, rest) {
  const [tag, properties] = rest ? ['button', { type: 'button', dataset: { rest } }] : ['div', {}];
  const style = { '--share': share };
  const names = [make('span', {}, label), ' ', make('strong', {}, percent(share))];
  return make('li', {}, make(tag, { ...properties, style }, ...names));
}
