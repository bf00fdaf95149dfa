/** Beam search on the page: its tree as it grows, and what it finds. */

import { $, make } from '../element.js';
import { moveByArrows, percent, placeAfter, quoted, replaceRow } from './pieces.js';
import { beamSearch, ranked } from './search.js';
import { drawTree, treeOf } from './tree.js';

const LENGTH_PENALTY = 0.6; // the exponent, as keras-vanilla's searches have it

/** Makes pieces and translations answer to clicks; `take` gets ids and the chosen place. */
export function addBeams(take) {
  const taken = ({ target }) => {
    const { ids, place } = target.closest('[data-ids]')?.dataset ?? {};
    if (!ids) return;
    const all = ids.split('.').map(Number);
    take(all, Number(place ?? all.length - 1));
  };
  $('tree').addEventListener('click', taken);
  $('hypotheses').addEventListener('click', taken);
  moveByArrows($('hypotheses'));
}

/**
 * Searches, and shows each step.
 *
 * @param {InsideModel} model
 * @param {Sentence} sentence
 * @param {number} beams
 * @param {function(): boolean} wanted Whether it still is; if not, it ends.
 */
export async function showBeams(model, sentence, beams, wanted) {
  const next = async (ids) => (await model.step(sentence.text, ids)).logProbs;
  const { endId } = model.vocabulary;
  const settings = { beams, endId, limit: sentence.limit, lengthPenalty: LENGTH_PENALTY };
  const steps = [];
  $('searched').textContent = 'Searching…';
  const draw = () => {
    const [first] = [...ranked(steps.at(-1)), ...steps.at(-1)];
    const name = (id) => model.vocabulary.name(id);
    $('tree').replaceChildren(drawTree(treeOf(steps), first.ids, name));
  };
  for await (const kept of beamSearch(next, settings)) {
    if (!wanted()) return;
    steps.push(kept);
    draw();
  }
  const found = ranked(steps.at(-1));
  $('searched').textContent = `${steps.length} steps`;
  const items = await Promise.all(found.map((each) => itemOf(each, found[0], model, next)));
  if (!wanted()) return;
  replaceRow($('hypotheses'), items);
}

/** A translation, and where it parts from the best one. */
async function itemOf({ ids, score, logProb }, best, model, next) {
  const { vocabulary } = model;
  const place = ids.findIndex((id, i) => id !== best.ids[i]);
  const button = make('button', { type: 'button' }, vocabulary.text(ids) || '⟨nothing⟩');
  Object.assign(button.dataset, { ids: ids.join('.'), place: Math.max(0, place) });
  const facts = `score ${score.toFixed(2)}, probability ${percent(Math.exp(logProb))}`;
  const item = make('li', {}, button, ' ', make('span', {}, facts));
  if (place < 0) return item;
  const before = ids.slice(0, place);
  const logProbs = await next(before);
  const [other, first] = [ids, best.ids].map((all) => {
    return `${quoted(vocabulary.name(all[place]))} (${percent(Math.exp(logProbs[all[place]]))})`;
  });
  const where = placeAfter(vocabulary, before);
  item.append(' ', make('span', {}, `Parts ${where}: ${other}, not ${first}`));
  return item;
}
