/** On the page: what each word of the translation translates, and how sure the model is. */

import { $ } from './element.js';

const UNSURE = 0.3; // of words of a lower probability most looked at were wrong
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

let pieces = [];

/** Makes words answer to taps, clicks and the arrow keys. */
export function addWordLinks() {
  const output = $('translation');
  output.addEventListener('click', ({ target }) => target.closest('.word')?.focus());
  output.addEventListener('focusin', ({ target }) => choose(target));
  output.addEventListener('focusout', forgetWord);
  output.addEventListener('keydown', step);
  $('source').addEventListener('scroll', alignEcho);
}

/** Takes the pieces that the page shows; their words can be chosen from now on. */
export function offerWords(shown) {
  pieces = shown;
  const count = shown.flatMap(({ words }) => words ?? []).length;
  $('hint').hidden = !shown.some(({ words = [] }) => isLinked(words[0]));
  if (count > 0) $('translation').tabIndex = 0;
  else $('translation').removeAttribute('tabindex');
}

/** The nodes of a text, its words in elements of their own. */
export function wordNodes(text, words) {
  let end = 0;
  const nodes = words.flatMap((word) => {
    const gap = text.slice(end, word.begin);
    end = word.end;
    return [gap, wordNode(text.slice(word.begin, word.end), word)];
  });
  return [...nodes, text.slice(end)].filter((node) => node !== '');
}

/** Shows no word's source any more. */
export function forgetWord() {
  $('echo').replaceChildren();
  $('word').textContent = '';
}

function wordNode(text, { confidence }) {
  const node = document.createElement('span');
  node.className = 'word';
  node.tabIndex = -1; // the arrow keys lead to it
  node.textContent = text;
  if (confidence !== null && confidence < UNSURE) {
    node.classList.add('unsure');
    node.title = `Probability ${percent(confidence)}`;
  }
  return node;
}

function choose(node) {
  const word = wordOf(node);
  if (!word) return;
  const source = $('source').value.slice(word.sourceBegin ?? 0, word.sourceEnd ?? 0);
  const confidence = word.confidence === null ? '' : `Probability ${percent(word.confidence)}.`;
  $('word').textContent = [sentence(node, word, source), confidence].join(' ').trim();
  if (source) highlight(word);
}

function sentence(node, word, source) {
  if (!isLinked(word)) return `“${node.textContent}”.`;
  const what = source ? `“${source}”` : 'no single word';
  return `“${node.textContent}” translates ${what}.`;
}

/** The word that an element shows, in places of the whole text box. */
function wordOf(node) {
  const all = [...$('translation').childNodes];
  const piece = pieces[all.findIndex((each) => each.contains(node))];
  const elements = all.find((each) => each.contains(node))?.querySelectorAll?.('.word');
  const word = piece?.words?.[[...(elements ?? [])].indexOf(node)];
  if (!isLinked(word)) return word;
  const { sourceBegin, sourceEnd } = word;
  return {
    ...word,
    sourceBegin: piece.begin + sourceBegin,
    sourceEnd: piece.begin + sourceEnd,
  };
}

function isLinked(word) {
  return typeof word?.sourceBegin === 'number';
}

/** Marks a part of the text box in the copy that lies behind it. */
function highlight({ sourceBegin, sourceEnd }) {
  const text = $('source').value;
  const mark = document.createElement('mark');
  mark.textContent = text.slice(sourceBegin, sourceEnd);
  $('echo').replaceChildren(text.slice(0, sourceBegin), mark, text.slice(sourceEnd));
  const { clientHeight, scrollHeight } = $('source');
  if (scrollHeight > clientHeight) $('source').scrollTop = mark.offsetTop - clientHeight / 2;
  alignEcho();
}

/** Lays the copy under the text: a scroll bar may make it narrower, and move it. */
function alignEcho() {
  const { offsetWidth, clientWidth, scrollTop } = $('source');
  $('echo').style.paddingRight = `${Math.max(0, offsetWidth - clientWidth - 2)}px`;
  $('echo').scrollTop = scrollTop;
}

function step(event) {
  const words = [...$('translation').querySelectorAll('.word')];
  const place = words.indexOf(document.activeElement);
  const next = { Home: 0, End: words.length - 1 }[event.key] ?? place + STEPS[event.key];
  if (event.key === 'Escape') $('translation').focus();
  if (!words[next]) return;
  event.preventDefault(); // the page would scroll
  words[next].focus();
}

function percent(probability) {
  return `${Math.round(100 * probability)} %`;
}
