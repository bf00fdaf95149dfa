/** The page: the text, its translation, and the description of the model. */

import { rows, languageName } from './about.js';
import { sentences } from './sentences.js';
import { loadTranslator } from './translate.js';

const MODEL = new URL('translator.tflite', document.baseURI);
const PAUSE = 120; // milliseconds after the last key before the translation begins
const ADVICE = {
  missing: 'Is the server still running, and the file still there?',
  damaged: 'Copy or export it again: keras-vanilla export MODEL.keras FILE.tflite',
  'not-tflite': 'keras-vanilla export MODEL.keras FILE.tflite writes one.',
  'not-ours': 'keras-vanilla export MODEL.keras FILE.tflite writes one.',
  'other-format': 'The page that comes with that version reads it.',
  runtime: 'The page needs its folder runtime and a browser with WebAssembly SIMD.',
};
const $ = (id) => document.getElementById(id);

let translator;
let known = new Map(); // the translation of each sentence on the page
let newest = 0;
let timer;

start();

async function start() {
  $('source').addEventListener('input', () => {
    document.body.classList.add('stale');
    clearTimeout(timer);
    timer = setTimeout(update, PAUSE);
  });
  $('copy').addEventListener('click', copy);
  $('again').addEventListener('click', () => location.reload());
  fillFromAddress();
  try {
    await keepForOffline();
    translator = await loadTranslator(MODEL);
  } catch (error) {
    return showFailure(error);
  }
  await describe(translator.description);
  await update();
}

/**
 * Starts with the text behind `#text=` in the address, which is not sent to any server. It
 * is read once: a second such link on the open page needs a reload.
 */
function fillFromAddress() {
  const text = new URLSearchParams(location.hash.slice(1)).get('text');
  if (text === null) return;
  $('source').value = text;
  document.body.classList.add('stale'); // until `update` has translated it
}

/**
 * Waits for the service worker, which caches everything that is loaded afterwards.
 *
 * Where there is none (a private window, an address without https) the page needs the
 * network each time.
 */
async function keepForOffline() {
  const workers = navigator.serviceWorker;
  if (!workers || workers.controller) return;
  const controlled = new Promise((done) => {
    workers.addEventListener('controllerchange', done, { once: true });
    setTimeout(done, 2000); // after a forced reload the page is not controlled
  });
  await workers.register('service-worker.js').then(() => controlled, () => {});
}

function showFailure({ code, message }) {
  document.body.dataset.state = 'failed';
  $('state').textContent = '';
  $('reason').textContent = message;
  $('advice').textContent = ADVICE[code] ?? '';
  $('failure').hidden = false;
}

/** Shows what the model says about itself. */
async function describe(description) {
  const [from, to] = ['source_language', 'target_language'].map((key) => description[key]);
  $('name').textContent = description.name ?? 'Translator';
  if (from) $('from').textContent = languageName(from);
  if (to) $('to').textContent = languageName(to);
  $('source').lang = from ?? '';
  $('translation').lang = to ?? '';
  if (from && to) document.title = `${languageName(from)} to ${languageName(to)}`;
  for (const [name, value] of rows(description)) {
    const [term, definition] = ['dt', 'dd'].map((tag) => document.createElement(tag));
    [term.textContent, definition.textContent] = [name, value];
    $('description').append(term, definition);
  }
  $('about').hidden = false;
  const offline = (await globalThis.caches?.match(MODEL)) ? 'Works offline. ' : '';
  $('state').textContent = `${offline}Your text stays on this device.`;
  document.body.dataset.state = 'ready';
}

/** Translates what is new in the text box, one sentence after another. */
async function update() {
  if (!translator) return;
  const mine = ++newest;
  const segments = $('source').value.split(/(?<=\n)/).flatMap(sentences);
  for (const sentence of segments.map((segment) => segment.trim())) {
    if (!known.has(sentence)) known.set(sentence, await attempt(sentence));
    if (mine !== newest) return;
  }
  known = new Map(segments.map((each) => [each.trim(), known.get(each.trim())]));
  show(segments);
  document.body.classList.remove('stale');
}

async function attempt(sentence) {
  if (!sentence) return { text: '', milliseconds: 0 };
  return translator.translate(sentence).catch((error) => ({ error }));
}

function show(segments) {
  const results = segments.map((segment) => known.get(segment.trim()));
  const last = segments.length - 1;
  $('translation').replaceChildren(
    ...segments.map((segment, i) => node(segment, results[i], i === last)),
  );
  const translations = results.filter((each) => each.text);
  $('time').textContent = timeOf(translations);
  $('copy').hidden = translations.length === 0;
  const problem = results.find((each) => each.error)?.error;
  $('problem').hidden = !problem;
  $('problem').textContent = problem ? explained(problem, segments.length) : '';
}

/** A sentence's translation, or the sentence itself, marked, if there is none. */
function node(segment, { text, error }, isLast) {
  if (error) {
    const mark = document.createElement('mark');
    mark.textContent = segment;
    return mark;
  }
  const space = segment.slice(segment.trimEnd().length);
  return text + (space || isLast ? space : spaceAfter(text));
}

/** The space between sentences where the source has none: Chinese and Japanese need none. */
function spaceAfter(text) {
  return text === '' || text.at(-1) >= '\u3000' ? '' : ' ';
}

function explained(error, count) {
  const place = count > 1 ? 'The underlined sentence is left as it is. ' : '';
  return place + error.message;
}

function timeOf(translations) {
  const count = translations.length;
  if (count === 0) return '';
  const sum = translations.reduce((total, { milliseconds }) => total + milliseconds, 0);
  const each = Math.max(1, Math.round(sum / count));
  return count === 1 ? `${each} ms` : `${count} sentences, ${each} ms each`;
}

async function copy() {
  await navigator.clipboard.writeText($('translation').textContent.trim());
  $('copy').textContent = 'Copied';
  setTimeout(() => ($('copy').textContent = 'Copy'), 1500);
}
