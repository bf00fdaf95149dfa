/** The page: what is typed, what comes out of it, and what the model says of itself. */

import { rows, languageName } from './about.js';
import { sentences } from './sentences.js';
import { loadTranslator } from './translate.js';

const MODEL = new URL('translator.tflite', document.baseURI);
const PAUSE = 120; // milliseconds without a key before a translation begins
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
let known = new Map(); // what each sentence on the page became
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
 * Begins with the text behind `#text=` in the address, a part that no server is sent. It is
 * read once: who follows another such link on the open page loads it again.
 */
function fillFromAddress() {
  const text = new URLSearchParams(location.hash.slice(1)).get('text');
  if (text === null) return;
  $('source').value = text;
  document.body.classList.add('stale'); // until `update` has translated it
}

/**
 * Waits for the service worker, which keeps what is loaded from then on.
 *
 * Where there is none (a private window, an address without https) the page needs the
 * network each time.
 */
async function keepForOffline() {
  const workers = navigator.serviceWorker;
  if (!workers || workers.controller) return;
  const controlled = new Promise((done) => {
    workers.addEventListener('controllerchange', done, { once: true });
    setTimeout(done, 2000); // after a forced reload it stays out of control
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
  const parts = $('source').value.split(/(?<=\n)/).flatMap(sentences);
  for (const sentence of parts.map((part) => part.trim())) {
    if (!known.has(sentence)) known.set(sentence, await attempt(sentence));
    if (mine !== newest) return;
  }
  known = new Map(parts.map((part) => [part.trim(), known.get(part.trim())]));
  show(parts);
  document.body.classList.remove('stale');
}

async function attempt(sentence) {
  if (!sentence) return { text: '', milliseconds: 0 };
  return translator.translate(sentence).catch((error) => ({ error }));
}

function show(parts) {
  const found = parts.map((part) => known.get(part.trim()));
  const last = parts.length - 1;
  $('translation').replaceChildren(
    ...parts.map((part, i) => piece(part, found[i], i === last)),
  );
  const said = found.filter((each) => each.text);
  $('time').textContent = timeOf(said);
  $('copy').hidden = said.length === 0;
  const problem = found.find((each) => each.error)?.error;
  $('problem').hidden = !problem;
  $('problem').textContent = problem ? explained(problem, parts.length) : '';
}

/** A sentence's translation, or the sentence itself, marked, if there is none. */
function piece(part, { text, error }, isLast) {
  if (error) {
    const mark = document.createElement('mark');
    mark.textContent = part;
    return mark;
  }
  const space = part.slice(part.trimEnd().length);
  return text + (space || isLast ? space : spaceAfter(text));
}

/** Where the source had none, in Chinese or Japanese: none after their letters. */
function spaceAfter(text) {
  return text === '' || text.at(-1) >= '\u3000' ? '' : ' ';
}

function explained(error, count) {
  const place = count > 1 ? 'The underlined sentence is left as it is. ' : '';
  return place + error.message;
}

function timeOf(found) {
  if (found.length === 0) return '';
  const sum = found.reduce((total, { milliseconds }) => total + milliseconds, 0);
  const each = Math.max(1, Math.round(sum / found.length));
  return found.length === 1 ? `${each} ms` : `${found.length} sentences, ${each} ms each`;
}

async function copy() {
  await navigator.clipboard.writeText($('translation').textContent.trim());
  $('copy').textContent = 'Copied';
  setTimeout(() => ($('copy').textContent = 'Copy'), 1500);
}
