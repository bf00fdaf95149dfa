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

test('texts are cut where a sentence ends', () => {
  for (const parts of [
    ['A dog runs. ', 'A cat sleeps.'],
    ['Who is there? ', 'Nobody! ', '“Well…” He left.'],
    ['Dr. Smith met J. S. Bach at 5 p.m. on the 3. May. ', '(So what?)\t', 'So.'],
    ['Mr. Jones vs. Mrs. Jones is on p. 5 of the book. ', 'So what?'],
    ['It costs 3.50 euros, e.g. here, etc. and so on.'],
    ['Am 5. Mai, z.B. in Berlin, regnet es. ', 'Dann nicht.'],
    ['¿Qué tal? ', '¡Muy bien! ', '¿Y tú?'],
    ['今日は晴れ。', '明日は雨！', '本当？ ', '他说：“好。”', '我走了。'],
    ['यह घर है। ', 'वह पेड़ है।'],
    ['no mark at all'],
    [],
  ]) {
    assert.deepEqual(sentences(parts.join('')), parts);
  }
});

test('joined sentences are the text, whatever it is', () => {
  for (const text of setting.texts) assert.equal(sentences(text).join(''), text);
});
