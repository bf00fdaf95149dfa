/** What may come next: the most probable pieces, each of which can be chosen. */

import { $, make } from '../element.js';
import { pieceButton, placeAfter } from './pieces.js';
import { best } from './search.js';

const SHOWN = 8; // pieces

/** Makes pieces answer to clicks; `take` gets the id. */
export function addNextPieces(take) {
  $('next').addEventListener('click', ({ target }) => {
    const button = target.closest('button');
    if (button) take(Number(button.dataset.id));
  });
}

/**
 * @param {Vocabulary} vocabulary
 * @param {number[]} before The ids so far.
 * @param {Float64Array} logProbs Of the next id.
 * @param {number} taken The id that was chosen.
 */
export function showNextPieces(vocabulary, before, logProbs, taken) {
  const place = placeAfter(vocabulary, before);
  $('so-far').textContent = `${place[0].toUpperCase()}${place.slice(1)}:`;
  const ids = best(logProbs, SHOWN);
  if (!ids.includes(taken)) ids.push(taken);
  const items = ids.map((id) => {
    const [name, share] = [vocabulary.name(id), Math.exp(logProbs[id])];
    const button = pieceButton({ name, share });
    button.dataset.id = id;
    button.ariaPressed = String(id === taken);
    return make('li', {}, button);
  });
  $('next').replaceChildren(...items);
}
