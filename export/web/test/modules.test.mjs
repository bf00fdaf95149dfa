/** The modules that need no browser. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

const setting = JSON.parse(readFileSync(process.env.KERAS_VANILLA_WEB_TEST));
const [{ readDescription }, { sentences }, { TranslatorError }] = await Promise.all(
  ['description', 'sentences', 'errors'].map(
    (name) => import(pathToFileURL(`${setting.page}/${name}.js`)),
  ),
);
const file = new Uint8Array(readFileSync(setting.file));

test('the description is the one that Python reads', () => {
  assert.deepEqual(readDescription(file), setting.description);
});

test('a file cut anywhere is said to be damaged', () => {
  for (let size = 8; size < file.length - 16; size += 997) {
    assert.throws(() => readDescription(file.subarray(0, size)), { code: 'damaged' });
  }
});

test('whatever is wrong with a file, nothing but a TranslatorError is thrown', () => {
  let state = 1;
  const random = (below) => (state = (state * 48271) % 2147483647) % below;
  for (let round = 0; round < 300; round++) {
    const bad = file.slice();
    for (let i = 0; i < 40; i++) bad[random(bad.length)] = random(256);
    bad[4 * random(64)] ^= 1 << random(8); // where the tables begin
    try {
      readDescription(bad);
    } catch (error) {
      assert.ok(error instanceof TranslatorError, error.stack);
    }
  }
});

test('texts are cut into the sentences that Python cuts them into', () => {
  for (const parts of setting.sentences) {
    assert.deepEqual(sentences(parts.join('')), parts);
  }
});
