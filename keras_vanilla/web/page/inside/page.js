/** The page that shows how a sentence is translated, computed by the reader's browser. */

import { languageName, titleOf } from '../about.js';
import { copy } from '../buttons.js';
import { $ } from '../element.js';
import { examplesOf, markExample, showFailure, showModel, showProgress } from '../opening.js';
import { addressNow, readAddress } from './address.js';
import { alignmentLayer, showAttended } from './attended.js';
import { AttentionView } from './attention.js';
import { addBeams, showBeams } from './beams.js';
import { placeExplanations } from './explained.js';
import { addWithout, showWithout } from './leave_out.js';
import { openInside } from './model.js';
import { addNextPieces, showDrawn, showNextPieces } from './next_pieces.js';
import { continuations, drawn, logSoftmax, mostProbable, nucleus } from './search.js';
import { addTarget, showTarget } from './target.js';
import { isTouring, openTour } from './tour.js';

const MODEL = new URL('../inside.tflite', import.meta.url);
const RUNTIME = new URL('../runtime/', import.meta.url);
const PAUSE = 250; // milliseconds after the last key before the model begins
const BEAT = 900; // milliseconds per piece while it plays
const TOP_P = 0.9; // the probability of the pieces among which is drawn
const ATTENTIONS = {
  encoder: 'the encoder',
  cross: 'the decoder, from the sentence',
  self: 'the decoder, from what is written',
};
const COMPUTED = ['translation', 'target', 'details', 'searches', 'inside-encoder', 'inside-decoder'];
const EXPORT = 'keras-vanilla export MODEL.keras FOLDER --form site';

/** What the reader has chosen; its `ids` are null where they are the model's own. */
const chosen = readAddress();
let model, sentence, views;
let written = []; // the ids of the translation
let drawnFrom = Infinity; // the place of the first of them that was drawn at random
let draws = 0; // of this sentence
let runs = 0; // an older computation ends when a newer one begins
let requests = 0; // the same, of what the chosen piece depends on
let timer, player;

start();

async function start() {
  fillIn();
  placeExplanations();
  $('skip').addEventListener('click', (event) => {
    event.preventDefault(); // the address keeps what the reader has chosen
    $('main').focus();
  });
  openTour(readAddressAgain); // drawn while the model loads
  try {
    model = await openInside(MODEL, RUNTIME, { onProgress: showProgress });
  } catch (error) {
    return showFailure(error, EXPORT);
  }
  describe(model.description);
  views = Object.entries(ATTENTIONS).map(([id, name]) => new AttentionView($(id), name));
  listen();
  showModel(model.description, takeSentence);
  await readSentence();
}

/** Shows what the reader has chosen. */
function fillIn() {
  $('source').value = chosen.text ?? '';
  $('beams').value = chosen.beams;
  $('temperature').value = chosen.temperature;
}

/** Says what the model translates, and takes its first example where there is no text. */
function describe(description) {
  const { source_language: from, target_language: to } = description;
  document.title = `Look inside: ${titleOf(description)}`;
  if (from) $('from').textContent = `A sentence, in ${languageName(from)}`;
  if (to) $('to').textContent = `Its translation, in ${languageName(to)}`;
  $('source').lang = $('attended').lang = from ?? '';
  for (const id of ['translation', 'target', 'next', 'hypotheses']) $(id).lang = to ?? '';
  if (chosen.text === null) fillInExample();
}

function fillInExample() {
  $('source').value ||= examplesOf(model.description)[0] ?? '';
}

function listen() {
  window.addEventListener('unhandledrejection', ({ reason }) => {
    $('problem').textContent = reason.message;
  });
  window.addEventListener('hashchange', () => {
    if (!isTouring()) readAddressAgain();
  });
  addTarget((place) => choose(place));
  addNextPieces((id) => take([...written.slice(0, chosen.place), id]));
  addBeams((ids, place) => take(ids, { place }));
  addWithout(takeSentence);
  $('source').addEventListener('input', () => {
    ++runs; // what is computed now is no longer wanted
    stop();
    markBusy(COMPUTED);
    clearTimeout(timer);
    timer = setTimeout(readSentence, PAUSE, { isNew: true });
  });
  $('back').addEventListener('click', () => choose(chosen.place - 1));
  $('forward').addEventListener('click', () => choose(chosen.place + 1));
  $('play').addEventListener('click', () => (player ? stop() : play()));
  $('greedy').addEventListener('click', () => take([], { isOwn: true }));
  $('draw').addEventListener('click', () => take(written.slice(0, chosen.place), { isDrawn: true }));
  $('link').addEventListener('click', copyLink);
  $('temperature').addEventListener('input', () => {
    chosen.temperature = Number($('temperature').value);
    if (isShown()) show();
  });
  $('beams').addEventListener('change', () => {
    const beams = Math.round(Math.min(8, Math.max(1, Number($('beams').value) || 1)));
    $('beams').value = chosen.beams = beams;
    if (isShown()) search();
  });
}

/** Marks what belongs to another sentence or translation than the one that is computed now. */
function markBusy(ids, isBusy = true) {
  for (const id of ids) $(id).ariaBusy = String(isBusy);
}

/** Whether the translation on the page is the one that was asked for last. */
function isShown() {
  return $('target').ariaBusy !== 'true';
}

/** The text as the model gets it. */
function typed() {
  return $('source').value.trim().replace(/\s+/gu, ' ');
}

/** Shows what the address names, after it was changed. */
function readAddressAgain() {
  Object.assign(chosen, readAddress());
  fillIn();
  if (!model) return; // it is shown when the model has loaded
  if (chosen.text === null) fillInExample();
  readSentence();
}

/** Continues other ids; the browser's back button leads to those before. */
function take(ids, options) {
  if (typed() !== sentence.text) return; // the ids are of the sentence before
  keepAddress();
  history.pushState(null, '', location.href);
  goOn(ids, options);
}

/** Takes another sentence; the browser's back button leads to the one before. */
function takeSentence(text) {
  keepAddress();
  history.pushState(null, '', location.href);
  $('source').value = text;
  readSentence({ isNew: true });
}

/** Encodes the sentence, and translates it as the reader has chosen, or greedily. */
async function readSentence({ isNew = false } = {}) {
  const run = ++runs;
  stop();
  clearTimeout(timer);
  const text = typed();
  draws = 0;
  if (isNew) Object.assign(chosen, { ids: null, place: 0 });
  chosen.text = text;
  markExample(text);
  $('problem').textContent = '';
  markBusy(COMPUTED);
  if (text === '') {
    showNothing();
    return keepAddress();
  }
  try {
    sentence = await model.encode(text);
  } catch (error) {
    if (run !== runs) return; // another sentence is shown by now
    $('problem').textContent = error.message;
    return showNothing();
  }
  if (run !== runs) return;
  const names = sentence.tokens.map(({ name }) => name);
  views[0].show({ weights: sentence.weights, rows: names, columns: names });
  markBusy(['inside-encoder'], false);
  await goOn(validIds(chosen.ids), { place: chosen.place, isOwn: chosen.ids === null });
}

function showNothing() {
  document.body.classList.add('empty');
  $('translation').textContent = '';
  markBusy(COMPUTED, false);
}

/** The ids of a link, as far as the model has them. */
function validIds(ids) {
  const { pieces, endId } = model.vocabulary;
  const known = (ids ?? []).filter((id) => id < pieces.length).slice(0, sentence.limit);
  const end = known.indexOf(endId);
  return end < 0 ? known : known.slice(0, end + 1);
}

/**
 * Continues ids to their end, shows the result, and searches with beams.
 *
 * @param {number[]} ids
 * @param {{place?: number, isOwn?: boolean, isDrawn?: boolean}} [options] `place`: the
 *     piece that is chosen then, the last of `ids` without it; `isOwn`: the model's own
 *     choice from the beginning; `isDrawn`: at random, by the temperature.
 */
async function goOn(ids, { place = ids.length - 1, isOwn = false, isDrawn = false } = {}) {
  const run = ++runs;
  stop();
  markBusy(COMPUTED.filter((id) => id !== 'inside-encoder'));
  const { endId } = model.vocabulary;
  const settings = { endId, limit: sentence.limit };
  const drawnIds = []; // and what was likeliest instead
  if (!isOwn) {
    settings.choose = (logProbs, before) => {
      const room = sentence.limit - before.length - 1;
      const whole = model.vocabulary.withWholeCharacters(logProbs, before, room);
      const likeliest = mostProbable(whole);
      if (!isDrawn) return likeliest;
      const id = drawn(nucleus(warmed(whole), TOP_P), Math.random());
      drawnIds.push({ id, likeliest });
      return id;
    };
  }
  written = ids;
  for await (const more of continuations(logProbsAfter, ids, settings)) {
    if (run !== runs) return;
    written = more;
  }
  chosen.ids = isOwn ? null : written;
  chosen.place = isDrawn ? ids.length : Math.max(0, place);
  drawnFrom = isDrawn ? ids.length : Infinity;
  $('drawn').textContent = '';
  if (isDrawn) showDrawn(model.vocabulary, drawnIds, ++draws);
  $('greedy').hidden = isOwn;
  await showAll(run);
  if (run === runs) await search(); // last, because it takes longest
}

async function logProbsAfter(ids) {
  return (await model.step(sentence.text, ids)).logProbs;
}

/** Log-probabilities at the chosen temperature. */
function warmed(logProbs) {
  return logSoftmax(logProbs, chosen.temperature);
}

/** Chooses a piece of the translation. */
async function choose(place) {
  if (!written[place] || !isShown()) return;
  const run = runs;
  chosen.place = place;
  await showAll(run);
}

/** Shows the translation, then what its chosen piece depends on, which takes longer. */
async function showAll(run) {
  $('without').ariaBusy = 'true'; // until then, it has the numbers of another piece
  await show();
  if (run === runs) await showDependence();
}

/** Shows the translation and what one step says of its chosen piece. */
async function show() {
  const run = runs;
  const steps = [];
  for (const [i] of written.entries()) {
    steps.push(await model.step(sentence.text, written.slice(0, i)));
  }
  if (run !== runs) return;
  const place = (chosen.place = Math.min(chosen.place, written.length - 1));
  const { vocabulary } = model;
  const probabilities = written.map((id, i) => Math.exp(steps[i].logProbs[id]));
  showTarget(vocabulary, written, probabilities, place, drawnFrom);
  const before = written.slice(0, place);
  const next = warmed(steps[place].logProbs);
  showNextPieces(vocabulary, before, next, written[place], chosen.temperature);
  $('temperature-value').textContent = chosen.temperature.toFixed(1);
  showAttended(sentence, steps[place].cross, vocabulary.name(written[place]));
  showDecoder(steps, place);
  $('back').disabled = place === 0;
  $('forward').disabled = place === written.length - 1;
  showTime(steps);
  keepAddress();
  markBusy(['translation', 'target', 'details', 'inside-decoder'], false);
  document.body.classList.remove('empty');
}

/** Shows what the chosen piece depends on, which takes a translation for each word. */
async function showDependence() {
  const [run, request, { place }] = [runs, ++requests, chosen];
  const wanted = () => run === runs && request === requests;
  await showWithout(model, sentence, written.slice(0, place), written[place], wanted);
}

/** The decoder's attention: a row per step. */
function showDecoder(steps, place) {
  const { vocabulary } = model;
  const names = written.map((id) => vocabulary.name(id));
  const read = ['⟨start⟩', ...names.slice(0, -1)]; // a row is named by what its step writes
  const sources = sentence.tokens.map(({ name }) => name);
  const cross = joined(steps.map((step) => step.cross), sources.length);
  const layer = alignmentLayer(cross.length);
  views[1].show({ weights: cross, rows: names, columns: sources, layer }, place);
  const self = joined(steps.map((step) => step.self), read.length);
  views[2].show({ weights: self, rows: names, columns: read }, place);
}

/** The weights of steps, row by row, per layer and head; a short row ends with zeros. */
function joined(steps, columns) {
  return steps[0].map((heads, layer) =>
    heads.map((_, head) => {
      const all = new Float32Array(steps.length * columns);
      steps.forEach((step, row) => all.set(step[layer][head], row * columns));
      return all;
    }),
  );
}

function showTime(steps) {
  const times = steps.map(({ milliseconds }) => milliseconds).filter((each) => each !== null);
  const middle = times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
  const { milliseconds } = sentence; // null if it was encoded before, as the times of steps are
  const facts = milliseconds === null ? [] : [`The encoder took ${milliseconds.toFixed(0)} ms.`];
  if (times.length > 0) facts.push(`A step took ${middle.toFixed(1)} ms.`);
  $('time').textContent = facts.join(' ');
}

async function search() {
  const run = runs;
  const { beams } = chosen;
  const isWanted = () => run === runs && beams === chosen.beams;
  keepAddress();
  markBusy(['searches']);
  await showBeams(model, sentence, beams, isWanted);
  if (isWanted()) markBusy(['searches'], false);
}

/** Chooses piece after piece, from the first one if the last is chosen. */
function play() {
  choose(chosen.place === written.length - 1 ? 0 : chosen.place);
  player = setInterval(() => {
    choose(chosen.place + 1);
    if (chosen.place === written.length - 1) stop();
  }, BEAT);
  $('play').textContent = 'Stop';
}

function stop() {
  clearInterval(player);
  player = undefined;
  $('play').textContent = 'Play';
}

function keepAddress() {
  if (isTouring()) return; // the address is the tour's
  history.replaceState(null, '', addressNow(chosen));
  $('translate').href = `../index.html${addressNow({ ...chosen, ids: null, place: 0 })}`;
}

async function copyLink() {
  const copied = await copy(location.href);
  $('copied').textContent = copied ? 'Link copied' : 'The link is this page\'s address.';
}
