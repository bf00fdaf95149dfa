/** The translation, as a text and as a row of pieces of which one is chosen. */

import { $ } from '../element.js';
import { moveByArrows, pieceButton, replaceRow } from './pieces.js';

/** Makes pieces answer to clicks and the arrow keys; `choose` takes a piece's place. */
export function addTarget(choose) {
  moveByArrows($('target'), { chooses: true });
  $('target').addEventListener('click', ({ target }) => {
    const button = target.closest('button');
    if (button) choose([...$('target').children].indexOf(button));
  });
}

/**
 * @param {Vocabulary} vocabulary
 * @param {number[]} ids
 * @param {number[]} probabilities Of each id, after those before it.
 * @param {number} place Of the chosen piece.
 * @param {number} drawnFrom The place of the first piece that was drawn at random.
 */
export function showTarget(vocabulary, ids, probabilities, place, drawnFrom) {
  const buttons = ids.map((id, i) => {
    const name = vocabulary.name(id);
    const beginsWord = vocabulary.beginsWord(id);
    const button = pieceButton({ name, share: probabilities[i], beginsWord });
    button.ariaPressed = String(i === place);
    button.classList.toggle('later', i > place);
    button.classList.toggle('drawn', i >= drawnFrom);
    return button;
  });
  replaceRow($('target'), buttons, place);
  const text = vocabulary.text(ids) || '⟨nothing⟩';
  if ($('translation').textContent !== text) $('translation').textContent = text; // read out
}
