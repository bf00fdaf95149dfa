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
  const button = make('button', { type: 'button', className: 'piece', style: { '--share': share } });
  button.classList.toggle('continues', !beginsWord);
  button.append(name, ' ', make('small', {}, percent(share)));
  return button;
}

/** A name, shaded by its weight, which stands under it. */
export function shaded(name, weight) {
  const properties = { className: 'shaded', style: { '--weight': weight } };
  return make('span', properties, name, ' ', make('small', {}, percent(weight)));
}

/** Lets Tab enter some buttons once, at one of them. */
export function oneTabStop(root, current = 0) {
  root.querySelectorAll('button').forEach((button, i) => (button.tabIndex = i === current ? 0 : -1));
}

/** Replaces a row of buttons, of which Tab enters one; it gets the focus that was on another. */
export function replaceRow(root, children, current = 0) {
  const hadFocus = root.contains(document.activeElement);
  root.replaceChildren(...children);
  oneTabStop(root, current);
  if (hadFocus) root.querySelectorAll('button')[current]?.focus();
}

/**
 * Lets the arrow keys lead from button to button, where `oneTabStop` lets Tab enter.
 *
 * @param {HTMLElement} root
 * @param {{chooses?: boolean}} [options] Whether a button is chosen when it gets the focus.
 */
export function moveByArrows(root, { chooses = false } = {}) {
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
    oneTabStop(root, next);
    buttons[next].focus();
    if (chooses) buttons[next].click();
  });
}
