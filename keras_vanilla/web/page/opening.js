/** What both pages show while a model loads, and when it has: its title and its examples. */

import { titleOf } from './about.js';
import { $, make } from './element.js';

const PARTS = { model: 'the model', runtime: 'the runtime' };
const ADVICE = {
  missing: () => 'Is the server still running, and the file still there?',
  damaged: (command) => `Copy or export it again: ${command}`,
  'not-tflite': (command) => `${command} writes one.`,
  'not-ours': (command) => `${command} writes one.`,
  'other-format': () => 'The page that comes with that version reads it.',
  runtime: () =>
    'Is the server still running? The page needs all its files, its folder runtime and a ' +
    'browser with WebAssembly SIMD.',
};

/** Shows how much has arrived of what is loading: `Progress` in translate.d.ts. */
export function showProgress({ part, received, total }) {
  const of = total === null ? '' : ` of ${megabytes(total)}`;
  $('loading').textContent = `Loading ${PARTS[part]}: ${megabytes(received)}${of} MB`;
  if (total === null) $('arrived').removeAttribute('value');
  else $('arrived').value = received / total;
}

function megabytes(bytes) {
  return (bytes / 1e6).toFixed(1);
}

/**
 * Shows why the model did not load, instead of everything else.
 *
 * @param {TranslatorError} error
 * @param {string} command What writes the file that is needed.
 */
export function showFailure({ code, message }, command) {
  document.body.dataset.state = 'failed';
  $('reason').textContent = message;
  $('advice').textContent = ADVICE[code]?.(command) ?? '';
  $('again').addEventListener('click', () => location.reload());
  $('failure').hidden = false;
}

/**
 * Shows what a model translates, and offers its examples.
 *
 * @param {import('./translate.js').Description} description
 * @param {function(string)} take Gets the example that is chosen.
 */
export function showModel(description, take) {
  const { source_language: lang } = description;
  $('name').textContent = titleOf(description);
  const buttons = examplesOf(description).map((text) => {
    const properties = { type: 'button', className: 'example', dir: 'auto', lang: lang ?? '' };
    return make('button', { ...properties, onclick: () => take(text) }, text);
  });
  $('examples').append(...buttons);
  $('examples').hidden = buttons.length === 0;
  $('state').textContent = 'Your text stays on this device.';
  document.body.dataset.state = 'ready';
}

/** The sentences that a model is shown with; a file of version 0.6.0 or older has none. */
export function examplesOf({ examples }) {
  return examples ?? [];
}

/** Marks the example that a text is, if it is one. */
export function markExample(text) {
  for (const button of $('examples').querySelectorAll('button')) {
    button.ariaPressed = String(button.textContent === text);
  }
}
