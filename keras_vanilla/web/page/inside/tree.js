/** The tree of a beam search, drawn in SVG: each column is one step. */

import { percent } from './pieces.js';

const SVG = 'http://www.w3.org/2000/svg';
const ROW = 34; // pixels
const LETTER = 8.2; // pixels, on average, of the font of the labels
const GAP = 26; // between columns

/**
 * The tree of all hypotheses that were kept at some step.
 *
 * @param {Hypothesis[][]} steps As `beamSearch` yields them.
 * @returns {Node} Its root: `ids`, `logProb`, `children`, and in `kind` "ended" if a
 *     hypothesis ends there, "live" if the last step keeps it or what follows it, or "gone".
 */
export function treeOf(steps) {
  const root = { ids: [], logProb: 0, children: [], kind: 'live' };
  const nodes = new Map([['', root]]);
  for (const step of steps) {
    for (const { ids, logProb, finished } of step) {
      const key = ids.join('.');
      if (nodes.has(key)) continue;
      const node = { ids, logProb, children: [], kind: finished ? 'ended' : 'gone' };
      nodes.set(key, node);
      nodes.get(ids.slice(0, -1).join('.')).children.push(node);
    }
  }
  for (const { ids } of steps.at(-1) ?? []) {
    for (let length = 1; length <= ids.length; length++) {
      const node = nodes.get(ids.slice(0, length).join('.'));
      if (node.kind === 'gone') node.kind = 'live';
    }
  }
  return root;
}

/**
 * Draws a tree.
 *
 * @param {Node} root
 * @param {number[]} best The ids whose path is drawn strong.
 * @param {function(number): string} name Of an id.
 * @returns {SVGElement} Each piece has its ids, joined by dots, in `data-ids`.
 */
export function drawTree(root, best, name) {
  const widths = [];
  const rows = place(root, 0, 0, widths, name);
  const begins = widths.reduce((all, width) => [...all, all.at(-1) + width + GAP], [1]);
  const svg = element('svg', { width: begins.at(-1), height: rows * ROW, 'aria-hidden': true });
  const isBest = (node) => node.ids.every((id, i) => best[i] === id);
  const draw = (node) => {
    for (const child of node.children) {
      const [from, to] = [node, child].map(({ depth, row }) => ({
        x: begins[depth],
        y: (row + 0.5) * ROW,
        width: widths[depth],
      }));
      const strength = isBest(child) ? 'best' : child.kind;
      const [x, middle] = [from.x + from.width, from.x + from.width + GAP / 2];
      const d = `M${x} ${from.y}C${middle} ${from.y} ${middle} ${to.y} ${to.x} ${to.y}`;
      svg.append(element('path', { d, class: strength }));
      draw(child);
    }
    svg.append(label(node, begins[node.depth], widths[node.depth], isBest(node), name));
  };
  draw(root);
  return svg;
}

/** Gives each node its column and row; returns the first row that is free. */
function place(node, depth, row, widths, name) {
  node.depth = depth;
  const letters = [...nameOf(node, name)].length;
  widths[depth] = Math.max(widths[depth] ?? 0, LETTER * letters + 18);
  if (node.children.length === 0) {
    node.row = row;
    return row + 1;
  }
  const next = node.children.reduce((at, child) => place(child, depth + 1, at, widths, name), row);
  node.row = (node.children[0].row + node.children.at(-1).row) / 2;
  return next;
}

function label(node, x, width, isBest, name) {
  const group = element('g', { class: isBest ? 'best' : node.kind });
  group.dataset.ids = node.ids.join('.');
  const y = node.row * ROW + 4;
  const box = element('rect', { x, y, width, height: ROW - 8, rx: 5 });
  const text = element('text', { x: x + width / 2, y: y + ROW / 2 + 1, 'text-anchor': 'middle' });
  text.textContent = nameOf(node, name);
  const title = element('title', {});
  title.textContent = `${percent(Math.exp(node.logProb))} up to here`;
  group.append(title, box, text);
  return group;
}

function nameOf({ ids }, name) {
  return ids.length > 0 ? name(ids.at(-1)) : '⟨start⟩';
}

function element(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
