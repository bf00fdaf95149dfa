/** What the page that looks inside computes is what Keras and the one-call files compute. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { computed } from './inside.mjs';
import { open, setting } from './setting.mjs';

const TOLERANCE = 1e-3;
const page = await open(`${setting.urls.site}inside/index.html`);

const found = [];
for (const { text } of setting.sentences) {
  found.push(await page.evaluate(computed, { text, beams: setting.beams }));
}

test('both searches translate as the files that translate in one call', () => {
  assert.ok(found.length >= 50);
  for (const name of ['greedy', 'beams']) {
    assert.deepEqual(
      found.map((each) => each[name]),
      setting.sentences.map((each) => each[name]),
    );
  }
});

test('all attention weights are the model\'s', () => {
  let compared = 0;
  const close = (got, expected, name) => {
    assert.equal(got.length, expected.length, name);
    got.forEach((weight, i) => assert.ok(Math.abs(weight - expected[i]) < TOLERANCE, name));
    compared += got.length;
  };
  for (const [i, { weights }] of setting.sentences.entries()) {
    for (const [name, heads] of Object.entries(weights)) {
      const [side, layer, part] = name.split('/');
      heads.forEach((rows, head) => {
        if (side === 'encoder') return close(found[i].encoder[layer][head], rows.flat(), name);
        rows.forEach((row, step) => {
          const got = found[i][part][step][layer][head];
          close(got, row.slice(0, got.length), name);
          assert.ok(row.slice(got.length).every((weight) => weight === 0), name); // the future
        });
      });
    }
  }
  assert.ok(compared > 10_000);
});

test('the pieces of a sentence are in their order, and the last is its end', () => {
  for (const [i, { text }] of setting.sentences.entries()) {
    const { names } = found[i];
    assert.equal(names.at(-1), '⟨end⟩');
    assert.equal(names.slice(0, -1).join(''), text.replaceAll(' ', ''));
  }
});
