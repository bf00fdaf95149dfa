/** What may come next: the most probable pieces, each of which can be chosen. */

import { $, make } from '../element.js';
import { moveByArrows, pieceButton, percent, placeAfter, quoted, replaceRow } from './pieces.js';
import { best } from './search.js';

const SHOWN = 8; // pieces
const RARE = 0.01; // below it, all of them share a line
const NAMED = 4; // drawn pieces that were not the most probable ones

/** Makes pieces answer to clicks; `take` gets the id. */
export function addNextPieces(take) {
  moveByArrows($('next'));
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
 * @param {number} temperature The one of `logProbs`.
 */
export function showNextPieces(vocabulary, before, logProbs, taken, temperature) {
  const place = placeAfter(vocabulary, before);
  const warmth = temperature === 1 ? '' : `, at temperature ${temperature.toFixed(1)}`;
  $('so-far').textContent = `${place[0].toUpperCase()}${place.slice(1)}${warmth}:`;
  const ids = best(logProbs, SHOWN);
  if (!ids.includes(taken)) ids.push(taken);
  const share = (id) => Math.exp(logProbs[id]);
  const isLarge = (id) => id === taken || share(id) >= RARE;
  const choice = (id) => {
    const button = pieceButton({ name: vocabulary.name(id), share: share(id) });
    button.dataset.id = id;
    button.ariaPressed = String(id === taken);
    return button;
  };
  const items = ids.filter(isLarge).map((id) => make('li', {}, choice(id)));
  const rare = ids.filter((id) => !isLarge(id));
  if (rare.length > 0) {
    items.push(make('li', { className: 'rare' }, 'below 1 %: ', ...rare.flatMap((id) => [choice(id), ' '])));
  }
  const others = 1 - ids.reduce((sum, id) => sum + share(id), 0);
  if (others >= RARE) {
    const count = (logProbs.length - ids.length).toLocaleString('en');
    items.push(make('li', { className: 'rare' }, `the ${count} others together: ${percent(others)}`));
  }
  replaceRow($('next'), items);
}

/**
 * Says what was drawn, and which pieces are not the most probable ones.
 *
 * @param {Vocabulary} vocabulary
 * @param {{id: number, likeliest: number}[]} draws One for each drawn piece.
 * @param {number} count Of the draws so far: an equal result is seen to be a new one.
 */
export function showDrawn(vocabulary, draws, count) {
  const name = (id) => quoted(vocabulary.name(id));
  const others = draws.filter(({ id, likeliest }) => id !== likeliest);
  const differences = others
    .slice(0, NAMED)
    .map(({ id, likeliest }) => `${name(id)} instead of ${name(likeliest)}`);
  if (others.length > NAMED) differences.push(`and ${others.length - NAMED} more`);
  const text = vocabulary.text(draws.map(({ id }) => id)) || '⟨end⟩';
  $('drawn').textContent = `Draw ${count}: ${quoted(text)}. ` + (
    others.length > 0
      ? `Other than the most probable piece: ${differences.join('; ')}.`
      : 'Each piece is the most probable one of its step; at a higher temperature others are likelier.'
  );
}
