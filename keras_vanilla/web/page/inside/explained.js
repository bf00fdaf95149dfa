/** Words that are explained: each opens a popover, which is placed at the word. */

import { make } from '../element.js';

const ROOM = 240; // pixels under a word: with less, the explanation is above it

/** A paragraph; words in [brackets], in the singular or the plural, open their explanations. */
export function paragraph(sentence) {
  const parts = sentence.split(/\[(.+?)\]([.,:;]*)/u); // a mark stays with its word
  const nodes = parts.map((part, i) => {
    if (i % 3 === 1) return make('span', { className: 'unbroken' }, explained(part), parts[i + 1]);
    return i % 3 === 0 ? part : '';
  });
  return make('p', {}, ...nodes);
}

function explained(word) {
  const button = make('button', { type: 'button', className: 'word' }, word);
  const singular = word.toLowerCase().replace('queries', 'query').replace(/s$/u, '');
  button.setAttribute('popovertarget', `word-${singular.replace(/\s/gu, '-')}`);
  return button;
}

/** Places each explanation when the browser opens it. */
export function placeExplanations() {
  let word; // the last one that was chosen
  document.addEventListener('click', ({ target }) => (word = target.closest('.word') ?? word), true);
  document.addEventListener('beforetoggle', ({ target, newState }) => {
    if (newState === 'open') placeAt(word, target);
  }, true); // the event does not bubble
}

function placeAt(word, { style }) {
  const { left, top, bottom } = word.getBoundingClientRect();
  const height = document.documentElement.clientHeight;
  const isAbove = height - bottom < Math.min(top, ROOM);
  style.setProperty('--left', `${left}px`); // style.css keeps it inside the window
  style.top = isAbove ? 'auto' : `${bottom + scrollY}px`;
  style.bottom = isAbove ? `${height - top - scrollY}px` : 'auto';
  word.focus(); // not every browser focuses a button that is clicked
}
