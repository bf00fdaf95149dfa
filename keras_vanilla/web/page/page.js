/** The page: loads the model, describes it, and translates what is in the text box. */

import { languageName, rows, titleOf } from './about.js';
import { addressOf, inAddress } from './address.js';
import { addButtons } from './buttons.js';
import { $ } from './element.js';
import { examplesOf, markExample, showFailure, showModel, showProgress } from './opening.js';
import { showAll, showPiece } from './result.js';
import { loadTranslator } from './translate.js';
import { addWordLinks, forgetWord } from './word_links.js';

const MODEL = new URL('translator.tflite', document.baseURI);
const PAUSE = 120; // milliseconds after the last key before the translation begins
const LOOPBACK = /^(127\.\d+\.\d+\.\d+|\[::1\]|(.*\.)?localhost)$/;
const SERVICE_WORKER = new URL('service-worker.js', document.baseURI).href;
const KEPT = 'keras-vanilla-translator'; // the service worker's cache
const EXPORT = 'keras-vanilla export MODEL.keras FILE.tflite'; // writes what it translates with

let translator;
let timer;

start();

async function start() {
  $('source').addEventListener('input', () => changed());
  window.addEventListener('hashchange', fillFromAddress);
  addButtons(() => changed(0));
  addWordLinks();
  fillFromAddress();
  try {
    await prepareForOffline();
    translator = await loadTranslator(MODEL, { onProgress: showProgress });
  } catch (error) {
    return showFailure(error, EXPORT);
  }
  await describe(translator.description);
  await update();
}

/** Starts with the text behind `#text=` in the address. */
function fillFromAddress() {
  const text = inAddress('text');
  if (text === null) return;
  $('source').value = text;
  changed(0);
}

/**
 * Waits for the service worker, which caches everything that is loaded afterwards.
 *
 * Where there is none (a private window, an address without https) the page needs the
 * network each time. On loopback there must be none: tomorrow another program may have the
 * same port.
 */
async function prepareForOffline() {
  const workers = navigator.serviceWorker;
  if (!workers) return;
  if (LOOPBACK.test(location.hostname)) {
    return removeServiceWorker(workers).catch(() => {}); // where storage is forbidden
  }
  if (workers.controller) return;
  const controlled = new Promise((done) => {
    workers.addEventListener('controllerchange', done, { once: true });
    setTimeout(done, 2000); // after a forced reload the page is not controlled
  });
  await workers.register(SERVICE_WORKER).then(() => controlled, () => {});
}

/** Removes what version 0.5.0 has left on loopback. */
async function removeServiceWorker(workers) {
  if (!(await caches.has(KEPT))) return;
  const registration = await workers.getRegistration();
  const found = registration?.active?.scriptURL === SERVICE_WORKER;
  if (found) await registration.unregister();
  await caches.delete(KEPT);
  if (!found) return;
  location.reload(); // this page is still the worker's, which would fill its cache again
  await new Promise(() => {});
}

/** Takes an example where there is no text: typing replaces it. */
function beginWithExample(description) {
  const [example] = examplesOf(description);
  if (!example || inAddress('text') !== null || $('source').value) return;
  $('source').value = example;
  if (document.activeElement === $('source')) $('source').select();
}

/** Shows what the model says about itself. */
async function describe(description) {
  const [from, to] = ['source_language', 'target_language'].map((key) => description[key]);
  document.title = titleOf(description);
  if (from) $('from').textContent = languageName(from);
  if (to) $('to').textContent = languageName(to);
  $('source').lang = from ?? '';
  $('translation').lang = to ?? '';
  for (const [name, value] of rows(description)) {
    const [term, definition] = ['dt', 'dd'].map((tag) => document.createElement(tag));
    [term.textContent, definition.textContent] = [name, value];
    $('description').append(term, definition);
  }
  $('about').hidden = false;
  beginWithExample(description);
  const isKept = await globalThis.caches?.match(MODEL);
  showModel(description, (example) => {
    $('source').value = example;
    changed(0);
  });
  if (isKept) $('state').prepend('Works offline. ');
}

/** Translates the text box, after a pause in which nothing more is typed. */
function changed(pause = PAUSE) {
  document.body.classList.add('stale'); // until `update` has translated it
  forgetWord();
  clearTimeout(timer);
  timer = setTimeout(update, pause);
}

/** Translates the text box, one sentence after another. */
async function update() {
  if (!translator) return;
  $('translation').ariaBusy = 'true';
  markExample($('source').value);
  // Without a text of the reader's, the page begins with its tour.
  const text = $('source').value;
  const [firstText] = examplesOf(translator.description);
  $('inside').href = `inside/index.html${text === firstText ? '' : addressOf({ text })}`;
  const pieces = [];
  try {
    for await (const piece of translator.pieces($('source').value, { replaces: 'page' })) {
      showPiece(piece, pieces.push(piece) - 1);
    }
  } catch (error) {
    if (error.code === 'replaced') return; // by the next `update`
    throw error;
  }
  showAll(pieces, translator);
  $('translation').ariaBusy = 'false';
  document.body.classList.remove('stale');
}
