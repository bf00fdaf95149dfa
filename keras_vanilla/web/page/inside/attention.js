/** The weights of an attention: a small picture per head, and the chosen one large. */

import { make } from '../element.js';
import { meanOf } from './attended.js';
import { moveByArrows, oneTabStop, percent, quoted } from './pieces.js';

const TOP = 3; // weights that the sentence under the table names

/** Attention weights by layer and head. */
export class AttentionView {
  #root;
  #layer = null;
  #head = null; // null is the mean of the heads
  #row = 0;
  #data;

  /**
   * @param {HTMLElement} root Where it is shown.
   * @param {string} name Of the attention, for those who do not see where it is.
   */
  constructor(root, name) {
    this.#root = root;
    root.classList.add('attention');
    const region = { tabIndex: 0, role: 'region' };
    this.picker = make('div', { className: 'scrollable heads', ...region });
    this.picker.ariaLabel = `Heads of ${name}`;
    this.table = make('div', { className: 'scrollable weights', ...region });
    this.table.ariaLabel = `Weights of ${name}`;
    this.reads = make('p', { className: 'hint', role: 'status' });
    root.append(this.picker, this.table, this.reads);
    root.addEventListener('change', ({ target }) => this.#choose(target.value));
    moveByArrows(this.table, { chooses: true });
    root.addEventListener('click', ({ target }) => this.#chooseRow(target.closest('th button')));
  }

  /**
   * @param {{weights: Float32Array[][], rows: string[], columns: string[], layer?: number}} data Weights
   *     per layer and head, row by row, and the names of both axes; `layer`, if it is there,
   *     is the one to begin with.
   * @param {number} [row] The chosen row.
   */
  show(data, row = 0) {
    this.#data = data;
    this.#row = Math.min(row, data.rows.length - 1);
    this.#layer ??= data.layer ?? 0;
    this.#showHeads();
    this.#showWeights();
  }

  #choose(value) {
    const [layer, head] = value.split('.');
    this.#layer = Number(layer);
    this.#head = head === 'mean' ? null : Number(head);
    this.#showWeights();
  }

  #chooseRow(button) {
    if (!button) return;
    this.#row = Number(button.dataset.row);
    this.#showWeights();
    this.table.querySelectorAll('th button')[this.#row].focus();
  }

  #showHeads() {
    const { weights, rows, columns } = this.#data;
    const name = `heads of ${this.#root.id}`;
    const lines = weights.map((heads, layer) => {
      const all = [['mean', meanOf(heads)], ...heads.entries()];
      const choices = all.map(([head, values]) => {
        const value = `${layer}.${head}`;
        const isChosen = value === `${this.#layer}.${this.#head ?? 'mean'}`;
        const input = make('input', { type: 'radio', name, value, checked: isChosen });
        const caption = head === 'mean' ? 'mean' : String(head + 1);
        input.ariaLabel = `Layer ${layer + 1}, ${head === 'mean' ? 'mean' : `head ${caption}`}`;
        const picture = drawing(values, rows.length, columns.length, this.#root);
        return make('label', {}, input, picture, caption);
      });
      return make('div', {}, make('span', {}, `Layer ${layer + 1}`), ...choices);
    });
    this.picker.replaceChildren(...lines);
  }

  #showWeights() {
    const { weights, rows, columns } = this.#data;
    const heads = weights[this.#layer];
    const values = this.#head === null ? meanOf(heads) : heads[this.#head];
    const head = make('tr', {}, make('td'), ...columns.map((name) => {
      return make('th', { scope: 'col' }, make('span', { dir: 'auto' }, name));
    }));
    const lines = rows.map((name, row) => {
      const of = values.subarray(row * columns.length, (row + 1) * columns.length);
      return line(name, row, of, row === this.#row);
    });
    this.table.style.setProperty('--columns', columns.length);
    this.table.replaceChildren(make('table', {}, make('thead', {}, head), make('tbody', {}, ...lines)));
    oneTabStop(this.table, this.#row);
    const begin = this.#row * columns.length;
    this.#say(values.subarray(begin, begin + columns.length));
  }

  #say(values) {
    const { rows, columns } = this.#data;
    const order = [...values.keys()].sort((one, other) => values[other] - values[one]);
    const largest = order.slice(0, TOP).filter((i) => values[i] > 0);
    const most = largest.map((i) => `${quoted(columns[i])} ${percent(values[i])}`);
    this.reads.textContent = `${quoted(rows[this.#row])} reads ${most.join(', ')}.`;
  }
}

function line(name, row, values, isChosen) {
  const button = make('button', { type: 'button', ariaPressed: String(isChosen) }, name);
  button.dataset.row = row;
  const cells = Array.from(values, (weight) => {
    const cell = make('td', {}, Math.round(100 * weight) || '');
    cell.style.setProperty('--weight', weight);
    return cell;
  });
  const header = make('th', { scope: 'row', dir: 'auto' }, button);
  return make('tr', { className: isChosen ? 'chosen' : '' }, header, ...cells);
}

/** A small picture of weights: one pixel per weight, as dark as it is large. */
function drawing(values, rows, columns, root) {
  const canvas = make('canvas', { width: columns, height: rows, ariaHidden: 'true' });
  const context = canvas.getContext('2d');
  context.fillStyle = getComputedStyle(root).caretColor; // --fill, in light or in dark
  values.forEach((weight, i) => {
    context.globalAlpha = weight;
    context.fillRect(i % columns, Math.floor(i / columns), 1, 1);
  });
  return canvas;
}
