/**
 * The guided tour: one sentence's way through the model, in eight steps.
 *
 * It is drawn from tour.json, which was computed when the site was written, so it does not
 * wait for the model. Its step is in the address: the browser's back button leads to the
 * step before.
 */

import { inAddress } from '../address.js';
import { $, make } from '../element.js';
import { addressNow } from './address.js';
import { explained } from './explained.js';
import { percent, quoted } from './pieces.js';

const SHOWN = 3; // numbers of a query, a key or a value
const WEIGHTS_SHOWN = 4; // pieces; all are in a table that is closed
const ENDED = 'keras-vanilla tour ended'; // in the browser's memory: it is not begun again

const STEPS = [
  ['The sentence becomes pieces', showPieces],
  ['Each piece becomes numbers', showEmbedding],
  ['A head of the encoder reads', showHead],
  ['What the encoder leaves: the memory', showMemory],
  ['The decoder reads the memory', showCross],
  ['Probabilities, and a choice', showChoice],
  ['And so on, to the end', showSteps],
  ['Leave a word out', showWithout],
];
let example; // tour.json
let end; // ends the tour

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
  end = (...where) => leave(onEnd, ...where);
  $('take-tour').hidden = false;
  $('take-tour').addEventListener('click', () => (location.hash = 'tour=1'));
  $('tour-back').addEventListener('click', () => (location.hash = `tour=${stepNow() - 1}`));
  $('tour-next').addEventListener('click', () => {
    if (stepNow() < STEPS.length) location.hash = `tour=${stepNow() + 1}`;
    else end();
  });
  $('tour-skip').addEventListener('click', () => end());
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

/** Ends the tour, and goes to an address and an element of the page. */
function leave(onEnd, address = '#', id = 'source') {
  try {
    localStorage.setItem(ENDED, 'true');
  } catch {
    // without a memory, it begins again at the next visit
  }
  history.pushState(null, '', address);
  document.body.classList.remove('touring');
  onEnd();
  $(id).focus();
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

// The steps: what each says, and what it shows.

function showPieces({ text, pieces, ids, vocabulary_size: size }) {
  const aboutSpaces = pieces.includes('⟨space⟩')
    ? ' A space belongs to the piece after it; where the model knows no such piece, ⟨space⟩ is one.'
    : '';
  const chips = pieces.map((name, i) => chip(name, `number ${ids[i]}`));
  return {
    text: [
      `The model reads ${quoted(text)} as a row of [pieces]: whole words where they are `
        + `frequent, parts of words where they are rare. It knows ${grouped(size)} of them, `
        + 'and to the model each is a number.',
      `A last piece marks the end of the sentence.${aboutSpaces}`,
    ],
    drawing: [row(chips)],
  };
}

function showEmbedding({ pieces, position, embedding, positional, sum, d_model: width }) {
  const name = quoted(pieces[position]);
  const rows = [
    [`the vector of ${name}`, embedding],
    [`+ that of position ${position}`, positional],
    ['= what the encoder gets', sum],
  ];
  return {
    text: [
      `Each piece has a [vector] of ${width} numbers, which training has found: similar pieces `
        + 'have similar vectors. The model adds a second vector, made of sines and cosines, '
        + 'that is different at each position: without it, the order of the words would be '
        + 'lost.',
      `Here are the first ${embedding.length} numbers for ${name}, which is at position `
        + `${position}, counted from 0.`,
    ],
    drawing: [vectors(rows)],
  };
}

function showHead({ pieces, position, head, query, keys, values, scores, weights, output, ...sizes }) {
  const order = [...weights.keys()].sort((one, other) => weights[other] - weights[one]);
  const [best, second] = order;
  const [reader, read, also] = [position, best, second].map((i) => quoted(pieces[i]));
  const products = [0, 1].map((i) => `${number(query[i])} · ${number(keys[best][i])}`);
  const [root, sum] = [Math.sqrt(query.length), query.reduce((all, q, i) => all + q * keys[best][i], 0)];
  const powers = scores.map(Math.exp);
  const total = (numbers, ids) => ids.reduce((all, i) => all + numbers[i], 0);
  const shares = order.slice(0, WEIGHTS_SHOWN).map((i) => {
    return [pieces[i], number(scores[i]), number(powers[i]), shareCell(weights[i])];
  });
  const rest = order.slice(WEIGHTS_SHOWN);
  if (rest.length > 0) {
    const share = shareCell(total(weights, rest));
    shares.push([`the other ${rest.length}`, '', number(total(powers, rest)), share]);
  }
  const lines = pieces.map((name, i) => {
    return [name, number(scores[i]), shareCell(weights[i]), first(keys[i]), first(values[i])];
  });
  const few = (vector) => vector.slice(0, SHOWN);
  const power = make('span', {}, 'e', make('sup', {}, 'score'));
  const parts = [best, second].map((i) => few(values[i]).map((value) => value * weights[i]));
  const stages = [
    stage(
      'The head makes three short [vectors] of each piece: a [query] (what it looks for), a '
        + '[key] (what it can be found by) and a [value] (what it passes on), of '
        + `${query.length} numbers each.`,
      vectors([
        [`query of ${reader}`, few(query)],
        [`key of ${read}`, few(keys[best])],
        [`value of ${read}`, few(values[best])],
      ], 'Query, key and value'),
    ),
    stage(
      `${reader} gives ${read} a score: query times key, number by number, added up and `
        + `divided by √${query.length}.`,
      formula(`${products.join(' + ')} + … = ${number(sum)}`),
      formula(`${number(sum)} / √${query.length} = ${number(sum)} / ${number(root)} = ${number(scores[best])}`),
    ),
    stage(
      'The [softmax] turns the scores for all pieces into weights that sum to 100 %: e to the '
        + `power of each score, divided by the sum of these powers, ${number(total(powers, order))}.`,
      table(['piece', 'score', power, 'weight'], shares, 0, 'Scores and weights'),
    ),
    stage(
      'The result is the sum of all values, each times its weight.',
      vectors([
        [`${percent(weights[best])} of ${read}`, parts[0]],
        [`+ ${percent(weights[second])} of ${also}`, parts[1]],
        ['+ others = result', few(output)],
      ], 'The result'),
    ),
  ];
  return {
    text: [
      'In each [layer] of the [encoder] every piece reads from all pieces. This is called '
        + `[attention], and ${sizes.num_heads} [heads] do it at once. Here is head ${head} of `
        + `the first layer, reading for ${reader} in four stages.`,
    ],
    drawing: [
      make('ol', { className: 'stages' }, ...stages),
      paragraph('The results of all heads are joined, multiplied by one more matrix, and added '
        + 'to the vector of the piece.'),
      make('details', {}, make('summary', {}, `All ${pieces.length} pieces`),
        table(['piece', 'score', 'weight', 'key', 'value'], lines, best, 'All pieces')),
    ],
  };
}

/** One stage of a computation: a sentence, and what it shows. */
function stage(sentence, ...shown) {
  return make('li', {}, paragraph(sentence), ...shown);
}

function formula(text) {
  return make('p', { className: 'formula' }, text);
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
        + `${width} numbers that also knows the rest of the sentence: the [memory].`,
      'The encoder works once per sentence, on all pieces at the same time. Here are the '
        + `first ${memory[0].length} numbers of each vector, as dark as they are large.`,
    ],
    drawing: [table([], lines)],
  };
}

function showCross({ pieces, written, beginnings, cross, cross_layer: layer }) {
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
        + `${percent(cross[step][order[0]])} of the weight (the mean of the heads of layer ${layer}).`,
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
      `At the end of the step there is a score for each of ${grouped(size)} pieces, and the `
        + 'softmax makes probabilities of them.',
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
    ],
    drawing: [table(['next piece', 'probability', 'after'], lines)],
  };
}

function showWithout({ text, written, beginnings, cross }) {
  const place = clearest(cross, written);
  const choices = { text, ids: null, place, beams: 4, temperature: 1 };
  const name = quoted(written[place]);
  const properties = { type: 'button', onclick: () => end(addressNow(choices), 'depends') };
  return {
    text: [
      '[Attention] shows where the model reads, not what decides. To find that out, leave a '
        + 'word out of the sentence and see what changes.',
      `${soFar(beginnings[place])} The next piece is ${name}. Which word of the sentence `
        + 'decided this? The page shows how probable the piece is without each word, the '
        + 'lowest first. Choose one of these rows there, and the sentence is translated without '
        + 'the word.',
    ],
    drawing: [
      make('p', {}, make('button', properties, `Which word decided ${name}?`)),
      paragraph('Or begin with your own sentence: everything is computed as you type, and you '
        + 'can choose other pieces than the model.'),
    ],
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
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  const text = Math.abs(value).toLocaleString('en', digits);
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

/** A table of vectors, each with a name, of which the first numbers are shown. */
function vectors(rows, label) {
  const shaded = cell(rows.flatMap(([, numbers]) => numbers));
  const lines = rows.map(([name, numbers]) => [name, ...numbers.map(shaded), '…']);
  return table([], lines, null, label);
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
function table(heads, lines, strong = null, label = $('tour-title').textContent) {
  const head = heads.map((name) => make('th', { scope: 'col' }, name));
  const body = lines.map(([name, ...cells], i) => {
    const header = make('th', { scope: 'row', dir: 'auto' }, name);
    const rest = cells.map((each) => make('td', {}, each));
    return make('tr', { className: i === strong ? 'strong' : '' }, header, ...rest);
  });
  const whole = make('table', {}, make('thead', {}, make('tr', {}, ...head)), make('tbody', {}, ...body));
  const region = { tabIndex: 0, role: 'region', ariaLabel: label };
  return make('div', { className: 'scrollable scrolled', ...region }, whole);
}
