/** The buttons Copy, Link and Clear. */

import { addressOf } from './address.js';
import { $ } from './element.js';

const SECONDS = 4; // that a message about a copy stays

let timer;

/** Makes the buttons work; `changed` is called when the text box was cleared. */
export function addButtons(changed) {
  $('copy').addEventListener('click', copyTranslation);
  $('link').addEventListener('click', copyLink);
  $('clear').addEventListener('click', () => {
    $('source').value = '';
    $('source').focus();
    changed();
  });
}

async function copyTranslation() {
  const copied = await copy($('translation').textContent.trim());
  if (!copied) getSelection().selectAllChildren($('translation'));
  say(copied ? 'Copied' : 'The browser did not allow it: copy the selected text.');
}

async function copyLink() {
  history.replaceState(null, '', addressOf({ text: $('source').value }));
  const copied = await copy(location.href);
  say(copied ? 'Link copied' : 'The browser did not allow it: the link is its address.');
}

/** Whether the browser let the page copy a text. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text); // which http without TLS does not have
    return true;
  } catch {
    return false;
  }
}

function say(message) {
  $('copied').textContent = message;
  clearTimeout(timer);
  timer = setTimeout(() => ($('copied').textContent = ''), 1000 * SECONDS);
}
