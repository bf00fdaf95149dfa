/**
 * The guided tour: one sentence's way through the model, in seven steps.
 *
 * It is drawn from tour.json, which was computed when the site was written, so it does not
 * wait for the model. Its step is in the address: the browser's back button leads to the
 * step before.
 */

import { inAddress } from '../address.js';
import { $, make } from '../element.js';
import { percent, quoted } from './pieces.js';

const SHOWN = 4; // numbers of a query, a key or a value
const ENDED = 'keras-vanilla tour ended'; // in the browser's memory: it is not begun again

const STEPS = [
  ['The sentence becomes pieces', showPieces],
  ['Each piece becomes numbers', showEmbedding],
  ['A head of the encoder reads', showHead],
  ['What the encoder leaves: the memory', showMemory],
  ['The decoder reads the memory', showCross],
  ['Probabilities, and a choice', showChoice],
  ['And so on, to the end', showSteps],
];
let example; // tour.json

/** Whether the tour is shown instead of the page. */
export function isTouring() {
  return document.body.classList.contains('touring');
}

/**
 * Begins the tour where the address says so, and for a reader who has not ended it.
 *
 * @param {function()} onEnd Called when the reader ends it.
 */
export async function openTour(onEnd) {
  const answer = await fetch(new URL('tour.json', import.meta.url)).catch(() => null);
  if (!answer?.ok) return; // a site without an example
  example = await answer.json();
  $('take-tour').hidden = false;
  $('take-tour').addEventListener('click', () => (location.hash = 'tour=1'));
  $('tour-back').addEventListener('click', () => (location.hash = `tour=${stepNow() - 1}`));
  $('tour-next').addEventListener('click', () => {
    if (stepNow() < STEPS.length) location.hash = `tour=${stepNow() + 1}`;
    else end(onEnd);
  });
  $('tour-skip').addEventListener('click', () => end(onEnd));
  window.addEventListener('hashchange', () => showStep());
  if (location.hash === '' && !hasEnded()) history.replaceState(null, '', '#tour=1');
  showStep({ focus: false });
}

/** The step in the address, from 1, or null. */
function stepNow() {
  const step = Number(inAddress('tour'));
  return Number.isInteger(step) && step >= 1 && step <= STEPS.length ? step : null;
}

function showStep({ focus = true } = {}) {
  const step = stepNow();
  document.body.classList.toggle('touring', step !== null);
  if (step === null) return;
  const [title, show] = STEPS[step - 1];
  const { text, drawing } = show(example);
  $('tour-step').textContent = `Step ${step} of ${STEPS.length}`;
  $('tour-title').textContent = title;
  $('tour-text').replaceChildren(...text.map((sentence) => paragraph(sentence)));
  $('tour-drawing').replaceChildren(...drawing);
  $('tour-back').disabled = step === 1;
  $('tour-next').textContent = step === STEPS.length ? 'Your own sentence' : 'Next';
  if (focus) $('tour-title').focus(); // and a screen reader reads the step
}

function end(onEnd) {
  try {
    localStorage.setItem(ENDED, 'true');
  } catch {
    // without a memory, it begins again at the next visit
  }
  history.pushState(null, '', '#');
  document.body.classList.remove('touring');
  onEnd();
  $('source').focus();
}

function hasEnded() {
  try {
    return localStorage.getItem(ENDED) !== null;
  } catch {
    return false;
  }
}

/** A paragraph; words in [brackets] are those that the page explains. */
function paragraph(sentence) {
  const parts = sentence.split(/\[(.+?)\]/u);
  const nodes = parts.map((part, i) => (i % 2 ? explained(part) : part));
  return make('p', {}, ...nodes);
}

function explained(word) {
  const button = make('button', { type: 'button', className: 'word' }, word);
  button.setAttribute('popovertarget', `word-${word.toLowerCase().replace(/s$/u, '')}`);
  return button;
}

// The steps: what each says, and what it shows.

function showPieces({ text, pieces, ids, vocabulary_size: size }) {
  const chips = pieces.map((name, i) => chip(name, `number ${ids[i]}`));
  return {
    text: [
      `The model reads ${quoted(text)} as a row of [pieces]: whole words where they are `
        + `frequent, parts of words where they are rare. It knows ${grouped(size)} of them, `
        + 'and to the model each is a number.',
      'A last piece marks the end of the sentence.',
    ],
    drawing: [row(chips)],
  };
}

function showEmbedding({ pieces, position, embedding, positional, sum, d_model: width }) {
  const name = quoted(pieces[position]);
  const rows = [
    [`the vector of ${name}`, embedding],
    [`+ that of position ${position + 1}`, positional],
    ['= what the encoder gets', sum],
  ];
  return {
    text: [
      `Each piece has a vector of ${width} numbers, which training has found: similar pieces `
        + 'have similar vectors. The model adds a second vector, made of sines and cosines, '
        + 'that is different at each position: without it, the order of the words would be '
        + 'lost.',
      `Here are the first ${embedding.length} numbers for ${name}.`,
    ],
    drawing: [table([], rows.map(([label, numbers]) => [label, ...numbers.map(cell(numbers))]))],
  };
}

function showHead({ pieces, position, head, query, keys, values, scores, weights, output, ...sizes }) {
  const order = [...weights.keys()].sort((one, other) => weights[other] - weights[one]);
  const [best] = order;
  const products = [0, 1].map((i) => `${number(query[i])} · ${number(keys[best][i])}`);
  const root = Math.sqrt(query.length).toFixed(2);
  const lines = pieces.map((name, i) => {
    return [name, shareCell(weights[i]), number(scores[i]), first(keys[i]), first(values[i])];
  });
  return {
    text: [
      `In each [layer] of the [encoder] every piece looks at all pieces, through `
        + `${sizes.num_heads} [heads] at once. This is head ${head} of the first layer, for `
        + `${quoted(pieces[position])}. The head makes three short vectors of each piece, of `
        + `${query.length} numbers: a query (what it looks for), a key (what it can be found `
        + 'by) and a value (what it passes on).',
      `The query of ${quoted(pieces[position])} is ${first(query)} … Its score for `
        + `${quoted(pieces[best])} is (${products.join(' + ')} + …) / ${root} = `
        + `${number(scores[best])}: the products of query and key, added up, divided by the `
        + 'square root of their number.',
      'The softmax turns scores into weights: e to the power of each score, divided by the '
        + 'sum of these powers. The weights sum to 100 %.',
    ],
    drawing: [
      table(['piece', 'weight', 'score', 'key', 'value'], lines, best),
      paragraph(`The result is the sum of the values, each times its weight: `
        + `${first(output)} … The results of all heads are joined, multiplied by one more `
        + 'matrix, and added to the vector of the piece.'),
    ],
  };
}

function showMemory({ pieces, memory, num_encoder_layers: layers, d_model: width }) {
  const largest = Math.max(...memory.flat().map(Math.abs));
  const lines = memory.map((vector, i) => {
    const cells = vector.map((value) => {
      const square = make('span', { className: 'number' });
      square.style.setProperty('--weight', Math.abs(value) / largest);
      return square;
    });
    const strip = make('div', { className: 'strip', ariaHidden: 'true' }, ...cells);
    return [pieces[i], strip];
  });
  return {
    text: [
      `After ${layers} layers the [encoder] is done. For each piece it leaves one vector of `
        + `${width} numbers that also knows the rest of the sentence: the memory.`,
      'The encoder works once per sentence, on all pieces at the same time. Here are the '
        + `first ${memory[0].length} numbers of each vector, as dark as they are large.`,
    ],
    drawing: [table([], lines)],
  };
}

function showCross({ pieces, written, beginnings, cross }) {
  const step = clearest(cross, written);
  const sentence = pieces.map((name, i) => {
    const shaded = make('span', { className: 'shaded' }, name, make('small', {}, percent(cross[step][i])));
    shaded.style.setProperty('--weight', cross[step][i]);
    return shaded;
  });
  const order = [...cross[step].keys()].sort((one, other) => cross[step][other] - cross[step][one]);
  return {
    text: [
      'The [decoder] writes the translation, one piece per step. In each step it reads what '
        + 'is written so far, and then the memory, with heads of its own: their queries come '
        + 'from the translation, their keys and values from the sentence.',
      `${soFar(beginnings[step])} Now it looks most at ${quoted(pieces[order[0]])}, with `
        + `${percent(cross[step][order[0]])} of the weight (the mean of the heads of one layer).`,
    ],
    drawing: [make('p', { className: 'memory' }, ...spaced(sentence))],
  };
}

function showChoice({ written, beginnings, cross, candidates, vocabulary_size: size }) {
  const step = clearest(cross, written);
  const lines = candidates[step].map(([name, share]) => [name, shareCell(share)]);
  const rest = 1 - candidates[step].reduce((sum, [, share]) => sum + share, 0);
  lines.push([`the other ${grouped(size - lines.length)}`, shareCell(Math.max(0, rest))]);
  return {
    text: [
      `At the end of the step there is a score for each of the ${grouped(size)} pieces of the `
        + 'target language, and the softmax makes probabilities of them.',
      `${soFar(beginnings[step])} The most probable next piece is `
        + `${quoted(candidates[step][0][0])}, and greedy search takes it. [Beam] search keeps `
        + 'several beginnings, and decides later.',
    ],
    drawing: [table(['next piece', 'probability'], lines, 0)],
  };
}

function showSteps({ written, beginnings, candidates, translation }) {
  const lines = written.map((name, i) => {
    const [, share] = candidates[i].find(([other]) => other === name) ?? [name, 0];
    return [name, shareCell(share), beginnings[i] || '⟨start⟩'];
  });
  return {
    text: [
      'The piece is appended, and the next step begins. When the most probable piece is the '
        + 'end, the translation is done.',
      `The result: ${quoted(translation)}`,
      'Now try your own sentence: on the page everything is computed as you type, and you can '
        + 'choose other pieces than the model.',
    ],
    drawing: [table(['next piece', 'probability', 'after'], lines)],
  };
}

/** The step whose cross-attention is clearest, of those that write a word. */
function clearest(cross, written) {
  const clearness = cross.map((weights, i) => {
    return /^\p{L}{2}/u.test(written[i]) ? Math.max(...weights.slice(0, -1)) : 0;
  });
  return clearness.indexOf(Math.max(...clearness));
}

function soFar(beginning) {
  return beginning ? `So far it has written ${quoted(beginning)}.` : 'Nothing is written yet.';
}

function number(value) {
  const text = Math.abs(value).toFixed(2);
  return `${value < 0 && text !== '0.00' ? '−' : ''}${text}`;
}

/** The first numbers of a vector. */
function first(numbers) {
  return numbers.slice(0, SHOWN).map(number).join('  ');
}

function grouped(count) {
  return count.toLocaleString('en');
}

/** Makes the cells of some numbers, each as dark as it is large among them. */
function cell(numbers) {
  const largest = Math.max(...numbers.map(Math.abs));
  return (value) => {
    const shown = make('span', { className: 'number' }, number(value));
    shown.style.setProperty('--weight', Math.abs(value) / largest / 2);
    return shown;
  };
}

function shareCell(share) {
  const shown = make('span', { className: 'share' }, percent(share));
  shown.style.setProperty('--share', share);
  return shown;
}

function chip(name, below) {
  return make('span', { className: 'chip' }, name, make('small', {}, below));
}

function row(chips) {
  return make('div', { className: 'chips' }, ...chips);
}

function spaced(nodes) {
  return nodes.flatMap((node) => [node, ' ']);
}

/** A table whose first column names the rows; it scrolls where the screen is narrow. */
function table(heads, lines, strong = null) {
  const head = heads.map((name) => make('th', { scope: 'col' }, name));
  const body = lines.map(([name, ...cells], i) => {
    const header = make('th', { scope: 'row', dir: 'auto' }, name);
    const rest = cells.map((each) => make('td', {}, each));
    return make('tr', { className: i === strong ? 'strong' : '' }, header, ...rest);
  });
  const whole = make('table', {}, make('thead', {}, make('tr', {}, ...head)), make('tbody', {}, ...body));
  const scrolled = make('div', { className: 'scrolled', tabIndex: 0, role: 'group' }, whole);
  scrolled.ariaLabel = $('tour-title').textContent;
  return scrolled;
}
