/** Where the decoder looks at one step: the sentence, its pieces shaded by their weights. */

import { $ } from '../element.js';
import { percent, quoted, shaded } from './pieces.js';

const DEEP = 6; // decoder layers from which the last but one aligns best

/** The decoder layer whose attention aligns best, as `decoding.alignment_layer` has it. */
export function alignmentLayer(layers) {
  return layers - (layers >= DEEP ? 2 : 1);
}

/**
 * The weights of the layer that aligns best, as the mean of its heads.
 *
 * @param {Float32Array[][]} cross Per layer and head, the weights of one step.
 */
export function alignment(cross) {
  return meanOf(cross[alignmentLayer(cross.length)]);
}

/** The mean of the heads' weights. */
export function meanOf(heads) {
  return heads[0].map((_, i) => heads.reduce((sum, head) => sum + head[i], 0) / heads.length);
}

/**
 * @param {{text: string, tokens: Object[]}} sentence
 * @param {Float32Array[][]} cross
 * @param {string} name Of the chosen piece.
 */
export function showAttended({ text, tokens }, cross, name) {
  const weights = alignment(cross);
  let end = 0;
  const nodes = tokens.flatMap((token, i) => {
    const gap = text.slice(end, token.begin);
    end = Math.max(end, token.end);
    return [gap, shaded(token.name, weights[i])];
  });
  $('attended').replaceChildren(...nodes);
  const most = weights.indexOf(Math.max(...weights));
  const { name: piece, begin, end: after } = tokens[most];
  $('looks').textContent =
    `To choose ${quoted(name)}, layer ${alignmentLayer(cross.length) + 1} reads ${quoted(piece)} most: ` +
    `${percent(weights[most])} of the weight, on average of its ${cross[0].length} heads.` +
    (begin === after ? ' This piece is no word: heads often read it when they need none.' : '');
}
