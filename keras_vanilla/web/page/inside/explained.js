/** Words that are explained: each opens a popover, which is placed at the word. */

import { make } from '../element.js';

const ROOM = 240; // pixels under a word: with less, the explanation is above it

/**
 * A paragraph, as a tag of a template: words in [brackets], in the singular or the plural, open
 * their explanations. What is inserted is data, whose brackets mean nothing.
 */
export function paragraph(texts, ...inserted) {
  const nodes = texts.flatMap((text, i) => {
    const parts = text.replace(/\n\s*/gu, ' ').split(/\[(.+?)\]([.,:;]*)/u); // a mark stays with its word
    const words = parts.map((part, j) => {
      if (j % 3 === 1) return make('span', { className: 'unbroken' }, explained(part), parts[j + 1]);
      return j % 3 === 0 ? part : '';
    });
    return [...words, inserted[i] ?? ''];
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
