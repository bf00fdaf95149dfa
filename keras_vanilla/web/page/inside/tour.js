/**
 * The guided tour: one sentence's way through the model, step by step, with a map of the model.
 *
 * It is drawn from tour.json, which was computed when the site was written, so it does not
 * wait for the model. Its step is in the address: the browser's back button leads to the
 * step before, and the boxes of the map are links.
 */

import { inAddress } from '../address.js';
import { $ } from '../element.js';
import { STEPS } from './tour_steps.js';

const ENDED = 'keras-vanilla tour ended'; // in the browser's memory: it is not begun again

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
  $('tour-title').textContent = title;
  const { text, drawing } = show(example, end);
  $('tour-step').textContent = `Step ${step} of ${STEPS.length}`;
  $('tour-text').replaceChildren(...text);
  $('tour-drawing').replaceChildren(...drawing);
  $('tour-back').disabled = step === 1;
  $('tour-next').textContent = step === STEPS.length ? 'Your own sentence' : 'Next';
  for (const box of $('map').querySelectorAll('a')) {
    box.ariaCurrent = box.getAttribute('href') === `#tour=${step}` ? 'step' : null;
  }
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
