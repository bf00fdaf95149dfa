/** What the reader has chosen, in the address: a link opens the page as it is. */

import { addressOf, inAddress } from '../address.js';

const MOST_BEAMS = 8;

/**
 * The choices that the address names; what cannot be read is as if it were not there.
 *
 * @returns {{text: string?, ids: number[]?, place: number, beams: number, temperature: number}}
 *     `text`: null if there is none; `ids`: the translation, or null for the model's own; `place`: of the chosen piece.
 */
export function readAddress() {
  return {
    text: inAddress('text'),
    ids: idsIn(inAddress('ids')),
    place: numberIn('place', 0, 0, 10_000),
    beams: numberIn('beams', 4, 1, MOST_BEAMS),
    temperature: numberIn('temperature', 1, 0.1, 2),
  };
}

/** The address of these choices; what is as usual is left out. */
export function addressNow({ text, ids, place, beams, temperature }) {
  return addressOf({
    text,
    ids: ids?.join('.') ?? null,
    place: place || null,
    beams: beams === 4 ? null : beams,
    temperature: temperature === 1 ? null : temperature,
  });
}

function idsIn(value) {
  return /^\d+(\.\d+)*$/.test(value ?? '') ? value.split('.').map(Number) : null;
}

function numberIn(name, usual, least, most) {
  const number = Number(inAddress(name) ?? usual);
  return number >= least && number <= most ? number : usual;
}
