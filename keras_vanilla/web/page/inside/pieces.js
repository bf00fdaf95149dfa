/** Pieces on the page, in buttons and in sentences. */

import { make } from '../element.js';

/** A probability for a person: “0.3 %”, “12 %”, “>99 %”. */
export function percent(probability) {
  const value = 100 * probability;
  if (value > 99 && value < 100) return '>99 %';
  if (value > 0 && value < 0.1) return '<0.1 %';
  return `${value < 9.95 ? Number(value.toFixed(1)) : Math.round(value)} %`;
}

/** “Hund” in the quotation marks of this page. */
export function quoted(name) {
  return `“${name}”`;
}

/** Where a translation goes on after ids: “at the beginning”, or “after “Ein Hund””. */
export function placeAfter(vocabulary, ids) {
  if (ids.length === 0) return 'at the beginning';
  const names = ids.map((id) => vocabulary.name(id));
  return `after ${quoted(vocabulary.text(ids).trim() || names.join(' '))}`;
}

/**
 * A button of a piece, with its share as a bar under it.
 *
 * @param {{name: string, share: number, beginsWord?: boolean}} piece
 */
export function pieceButton({ name, share, beginsWord = true }) {
  const label = `${name.replace(/[⟨⟩]/gu, '')}, ${percent(share)}`; // brackets are not read out
  const button = make('button', { type: 'button', className: 'piece', ariaLabel: label });
  button.classList.toggle('continues', !beginsWord);
  button.style.setProperty('--share', share);
  button.append(name, make('small', { ariaHidden: 'true' }, percent(share)));
  return button;
}

/** Lets the arrow keys lead from button to button: Tab enters the row once. */
export function moveByArrows(root) {
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  root.addEventListener('keydown', (event) => {
    const buttons = [...root.querySelectorAll('button')];
    const place = buttons.indexOf(document.activeElement);
    if (place < 0) return;
    const rightToLeft = getComputedStyle(root).direction === 'rtl';
    const turned = rightToLeft && /Left|Right/.test(event.key) ? -1 : 1;
    const ends = { Home: 0, End: buttons.length - 1 };
    const next = ends[event.key] ?? place + turned * steps[event.key];
    if (!buttons[next]) return;
    event.preventDefault(); // the page would scroll
    buttons[next].focus();
    buttons[next].click();
  });
}
