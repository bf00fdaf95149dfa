/** The steps of the guided tour: what each says, and what it shows of tour.json. */

import { make } from '../element.js';
import { addressNow } from './address.js';
import { paragraph } from './explained.js';
import { percent, quoted, shaded } from './pieces.js';

const SHOWN = 3; // numbers of a query, a key or a value
const WEIGHTS_SHOWN = 4; // pieces; all are in a table that is closed

/**
 * Titles, and functions of tour.json and of what ends the tour. Each gives paragraphs and a
 * drawing.
 */
export const STEPS = [
  ['The sentence becomes pieces', showPieces],
  ['Each piece becomes numbers', showEmbedding],
  ['A head of the encoder reads', showHead],
  ['What else is in a layer', showLayer],
  ['What the encoder leaves: the memory', showMemory],
  ['The decoder may not look ahead: the mask', showMask],
  ['The decoder reads the memory: cross-attention', showCross],
  ['Probabilities, and a choice', showChoice],
  ['And so on, to the end', showWriting],
  ['Which word decides?', showContrast],
];

function showPieces({ text, pieces, ids, position, contrast, vocabulary_size: size }) {
  const aboutSpaces = pieces.includes('⟨space⟩')
    ? ' A space belongs to the piece after it; where the model knows no such piece, ⟨space⟩ is one.'
    : '';
  const chips = pieces.flatMap((name, i) => {
    const className = i === position ? 'chip followed' : 'chip';
    return [make('span', { className }, name, ' ', make('small', {}, `number ${ids[i]}`)), ' '];
  });
  return {
    text: [
      paragraph`The model reads ${quoted(text)} as a row of [pieces]: whole words where they are
        frequent, parts of words where they are rare. It knows ${grouped(size)} of them, and to the
        model each is a number.`,
      paragraph`A last piece marks the end of the sentence.${aboutSpaces}`,
      follows(pieces[position], contrast),
    ],
    drawing: [make('div', { className: 'chips' }, ...chips)],
  };
}

function follows(name, contrast) {
  if (!contrast) return paragraph`This tour follows the piece ${quoted(name)}.`;
  const [[word, other], [written, instead]] = [contrast.words, contrast.write].map((all) => all.map(quoted));
  return paragraph`This tour follows ${quoted(name)}. The translation has ${written} here; if the sentence
    had ${other} instead of ${word}, it would have ${instead}. How does the model know?`;
}

function showEmbedding({ pieces, position, embedding, positional, sum, nearest, d_model: width }) {
  const name = quoted(pieces[position]);
  const rows = [
    [`the vector of ${name}`, embedding],
    [`+ that of position ${position}`, positional],
    ['= what the encoder gets', sum],
  ];
  const near = nearest.map(([other, cosine]) => `${quoted(other)} (${number(cosine)})`);
  return {
    text: [
      paragraph`Each piece has a [vector] of ${width} numbers, which training has found. Pieces that
        are used alike often have similar vectors. The nearest to that of ${name} are here
        ${listed(near)}; in parentheses is the [cosine], 1 for the same direction.`,
      paragraph`To attention, a sentence is a heap of pieces without an order. So the model adds a
        second vector, the [positional encoding], made of sines and cosines, which is different at
        each position: with it, the same piece at another place is another vector.`,
      paragraph`Here are the first ${embedding.length} numbers for ${name}, which is at position
        ${position}, counted from 0. Magenta is above zero, lime below.`,
    ],
    drawing: [vectors(rows)],
  };
}

function showHead({ pieces, position, head, query, keys, values, scores, weights, output, num_heads: count }) {
  const order = largestFirst(weights);
  const [best, second] = order;
  const [reader, read, also] = [position, best, second].map((i) => quoted(pieces[i]));
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
  const product = (i) => [role('query', number(query[i])), ' · ', role('key', number(keys[best][i])), ' + '];
  const stages = [
    stage(
      paragraph`The head makes three short [vectors] of each piece: a [query] (what it looks for), a
        [key] (what it can be found by) and a [value] (what it passes on), of ${query.length}
        numbers each.`,
      vectors([
        [role('query', `query of ${reader}`), few(query)],
        [role('key', `key of ${read}`), few(keys[best])],
        [role('value', `value of ${read}`), few(values[best])],
      ], 'Query, key and value'),
    ),
    stage(
      paragraph`${reader} gives ${read} a [score]: query times key, number by number, added up and
        divided by √${query.length}, the root of their length. The products have different signs, so
        a sum of ${query.length} is typically √${query.length} times as large as one of them, not
        ${query.length} times. Undivided, the scores would give one piece nearly all of the weight,
        from which training hardly learns.`,
      formula(...product(0), ...product(1), `… = ${number(sum)}`),
      formula(`${number(sum)} / √${query.length} = ${number(sum)} / ${number(root)} = ${number(scores[best])}`),
    ),
    stage(
      paragraph`The [softmax] turns the scores for all pieces into weights that sum to 100 %: e to
        the power of each score, divided by the sum of these powers,
        ${number(total(powers, order))}.`,
      table(['piece', 'score', power, 'weight'], shares, { strong: 0, label: 'Scores and weights' }),
    ),
    stage(
      paragraph`The result is the sum of all values, each times its weight.`,
      vectors([
        [role('value', `${percent(weights[best])} of ${read}`), parts[0]],
        [role('value', `+ ${percent(weights[second])} of ${also}`), parts[1]],
        ['+ others = result', few(output)],
      ], 'The result'),
    ),
  ];
  return {
    text: [
      paragraph`In each [layer] of the [encoder] every piece reads from all pieces. This is called
        [self-attention], and ${count} [heads] do it at once. Here is head ${head} of the first
        layer, reading for ${reader} in four stages.`,
    ],
    drawing: [
      make('ol', { className: 'stages' }, ...stages),
      make('details', {}, make('summary', {}, `All ${pieces.length} pieces`), table(
        ['piece', 'score', 'weight', role('key', 'key'), role('value', 'value')],
        lines, { strong: best, label: 'All pieces' },
      )),
    ],
  };
}

function showLayer({ pieces, position, sum, attended, layer_output: output, ...sizes }) {
  const { num_encoder_layers: layers, d_model: width, d_ff: inner } = sizes;
  const name = quoted(pieces[position]);
  const few = (vector) => vector.slice(0, 2 * SHOWN);
  return {
    text: [
      paragraph`The results of all heads are joined and multiplied by one more matrix. Then comes
        what every [layer] has besides attention:`,
    ],
    drawing: [
      make('ul', { className: 'stages' },
        stage(paragraph`A [residual connection]: the result is added to the vector that the piece had,
          which so is never lost.`),
        stage(paragraph`A [feed-forward network]: each vector, on its own, is made ${grouped(inner)}
          numbers long and then ${width} again, by two matrices; it is added to what it was, too.`),
        stage(paragraph`[Normalisation]: the ${width} numbers of a vector get the same mean and spread,
          once for attention and once for the network.`),
      ),
      vectors([
        [`${name} before the first layer`, few(sum)],
        ['after its attention', few(attended)],
        ['after its feed-forward network', few(output)],
      ]),
      paragraph`The next layer gets what this one gives. The encoder has ${layers} of them.`,
    ],
  };
}

function showMemory({ pieces, memory, num_encoder_layers: layers, d_model: width }) {
  const square = cell(memory.flat(), { isBare: true });
  const lines = memory.map((vector, i) => {
    return [pieces[i], make('div', { className: 'strip', ariaHidden: 'true' }, ...vector.map(square))];
  });
  return {
    text: [
      paragraph`After ${layers} layers the [encoder] is done. For each piece it leaves one vector of
        ${width} numbers that also knows the rest of the sentence: the [memory].`,
      paragraph`The encoder works once per sentence, on all pieces at the same time. Here are the
        first ${memory[0].length} numbers of each vector, magenta above zero and lime below.`,
    ],
    drawing: [table([], lines)],
  };
}

function showMask({ written, self }) {
  const read = ['⟨start⟩', ...written].slice(0, self.length);
  const rows = self.map((weights, row) => {
    const cells = weights.map((weight, column) => {
      const shown = shareCell(weight);
      shown.classList.toggle('masked', column > row);
      return shown;
    });
    return [written[row], ...cells];
  });
  return {
    text: [
      paragraph`The [decoder] writes one piece per step. First it reads what is written so far, with
        [self-attention]. The [mask] hides what comes later: its scores become minus infinity, and
        the [softmax] gives it 0 %.`,
      paragraph`Here are the first ${self.length} pieces that it writes. A row is what the step that
        writes it reads; what is hatched is masked.`,
    ],
    drawing: [
      make('div', { className: 'triangle' }, table(['writes', ...read], rows)),
      make('ul', { className: 'stages' },
        stage(paragraph`In training the whole translation is known: all rows are computed at once, and
          without the mask each would read the piece that it should predict.`),
        stage(paragraph`In writing there is one row after the other: what comes later does not exist yet.`),
      ),
    ],
  };
}

function showCross({ pieces, words, written, beginnings, step, cross, cross_layer: layer }) {
  const names = words.map((positions) => {
    return positions.map((i) => pieces[i]).filter((name) => name !== '⟨space⟩').join('');
  });
  const weights = words.map((positions) => positions.reduce((all, i) => all + cross[step][i], 0));
  const [most] = largestFirst(weights);
  return {
    text: [
      paragraph`Then it reads the [memory], with [cross-attention]: the [queries] come from the
        translation, the [keys] and [values] from the sentence. Only here the two meet.`,
      paragraph`${soFar(beginnings[step])} To write ${quoted(written[step])}, it looks most at
        ${quoted(names[most])}, with ${percent(weights[most])} of the weight (the mean of the heads
        of layer ${layer}; a word has the sum of its pieces).`,
    ],
    drawing: [
      make('p', { className: 'memory' }, ...names.flatMap((name, i) => [shaded(name, weights[i]), ' '])),
    ],
  };
}

function showChoice({ beginnings, candidates, step, vocabulary_size: size }) {
  const lines = candidates[step].map(([name, share]) => [name, shareCell(share)]);
  const rest = 1 - candidates[step].reduce((sum, [, share]) => sum + share, 0);
  lines.push([`the other ${grouped(size - lines.length)}`, shareCell(Math.max(0, rest))]);
  return {
    text: [
      paragraph`At the end of the step there is a score for each of ${grouped(size)} pieces, and the
        [softmax] makes probabilities of them.`,
      paragraph`${soFar(beginnings[step])} The most probable next piece is
        ${quoted(candidates[step][0][0])}, and [greedy search] takes it.`,
    ],
    drawing: [table(['next piece', 'probability'], lines, { strong: 0 })],
  };
}

function showWriting({ written, beginnings, candidates, translation }) {
  const lines = written.map((name, i) => {
    const [, share] = candidates[i].find(([other]) => other === name) ?? [name, 0];
    return [name, shareCell(share), beginnings[i] || '⟨start⟩'];
  });
  return {
    text: [
      paragraph`The piece is appended, and the next step begins. When the most probable piece is the
        end, the translation is done.`,
      paragraph`The result: ${quoted(translation)}`,
      paragraph`[Beam] search does not decide at once: it keeps the most probable beginnings, four
        for example, continues each of them, and discards all but the four best. The page draws
        those it kept as a tree: a branch that stops before the end was kept for a while, and then
        discarded.`,
    ],
    drawing: [table(['next piece', 'probability', 'after'], lines)],
  };
}

function showContrast({ text, written, beginnings, step, contrast }, end) {
  const ask = (sentence, name) => {
    const address = addressNow({ text: sentence, ids: null, place: step, beams: 4, temperature: 1 });
    const properties = { type: 'button', onclick: () => end(address, 'depends') };
    return make('p', {}, make('button', properties, `Which word decides ${quoted(name)}?`));
  };
  const questions = contrast
    ? contrast.write.map((name, i) => ask(contrast.probabilities[i][0], name))
    : [ask(text, written[step])];
  return {
    text: [
      paragraph`[Attention] shows where the model reads, not what decides. To find that out, change
        a word of the sentence, or leave it out, and see what becomes of the probabilities.`,
      ...(contrast ? [paragraph`${soFar(beginnings[step])}`] : []),
    ],
    drawing: [
      ...(contrast ? [contrastTable(contrast)] : []),
      paragraph`The page leaves out each word of a sentence in turn, and shows how probable the
        piece is without it.`,
      ...questions,
      paragraph`Or begin with your own sentence: everything is computed as you type, and you can
        choose other pieces than the model.`,
    ],
  };
}

function contrastTable({ words: [word, other], write, probabilities }) {
  const labels = [`with ${quoted(word)}`, `with ${quoted(other)}`, 'without either'];
  const lines = probabilities.map(([, ...shares], i) => [labels[i], ...shares.map(shareCell)]);
  return table(['the sentence', ...write], lines);
}

/** The numbers of places, those of the largest values first. */
function largestFirst(values) {
  return [...values.keys()].sort((one, other) => values[other] - values[one]);
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

function listed(names) {
  return new Intl.ListFormat('en').format(names);
}

/** One stage of a computation: a paragraph, and what it shows. */
function stage(...shown) {
  return make('li', {}, ...shown);
}

function formula(...parts) {
  return make('p', { className: 'formula' }, ...parts);
}

/** A text in the colour of a "query", a "key" or a "value". */
function role(name, text) {
  return make('span', { className: name }, text);
}

/** Makes the cells of some numbers, each as strong as it is large among them. */
function cell(numbers, { isBare = false } = {}) {
  const largest = Math.max(...numbers.map(Math.abs));
  return (value) => {
    const className = `number ${value < 0 ? 'below' : 'above'}`;
    const style = { '--weight': Math.abs(value) / largest };
    return make('span', { className, style }, isBare ? '' : number(value));
  };
}

/** A table of vectors, each with a name, of which the first numbers are shown. */
function vectors(rows, label) {
  const shown = cell(rows.flatMap(([, numbers]) => numbers));
  return table([], rows.map(([name, numbers]) => [name, ...numbers.map(shown), '…']), { label });
}

function shareCell(share) {
  return make('span', { className: 'share', style: { '--share': share } }, percent(share));
}

/** A table whose first column names the rows; it scrolls where the screen is narrow. */
function table(heads, lines, { strong = null, label } = {}) {
  const head = heads.map((name) => (name ? make('th', { scope: 'col' }, name) : make('td')));
  const body = lines.map(([name, ...cells], i) => {
    const header = make('th', { scope: 'row', dir: 'auto' }, name);
    const rest = cells.map((each) => make('td', {}, each));
    return make('tr', { className: i === strong ? 'strong' : '' }, header, ...rest);
  });
  const rows = head.length > 0 ? [make('thead', {}, make('tr', {}, ...head))] : [];
  const whole = make('table', {}, ...rows, make('tbody', {}, ...body));
  const region = { tabIndex: 0, role: 'region', ariaLabel: label ?? 'The numbers of this step' };
  return make('div', { className: 'scrollable scrolled', ...region }, whole);
}
