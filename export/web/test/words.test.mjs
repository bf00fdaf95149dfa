/** Words and marks: the cases of Python's callers, and what those say of random texts. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

const setting = JSON.parse(readFileSync(process.env.KERAS_VANILLA_WEB_TEST));
const cases = JSON.parse(readFileSync(setting.cases));
const [{ wordsOfSentence }, { readMarks }, { putMarks }] = await Promise.all(
  ['words', 'marks', 'marked_text'].map(
    (name) => import(pathToFileURL(`${setting.page}/${name}.js`)),
  ),
);

const pace = async () => {};
const bytes = (text) => new TextEncoder().encode(text).length;

for (const { source, tokens, bytes: given, expected } of cases.words) {
  test(`${source}: words have their sources`, () => {
    const text = tokens.map(([part]) => part).join('');
    let end = 0;
    const about = {
      ends: given ?? tokens.map(([part]) => (end += bytes(part))),
      spans: tokens.flatMap(([, begin, end]) => [begin, end]),
      confidence: tokens.map((token) => token[3]),
    };
    const words = wordsOfSentence(source, text, about);
    assert.deepEqual(
      words.map((word) => [
        text.slice(word.begin, word.end),
        source.slice(word.sourceBegin, word.sourceEnd),
        word.confidence,
      ]),
      expected,
    );
  });
}

test('what a file does not say is null', () => {
  const { source } = cases.words[0];
  const ends = [4, 9, 13];
  const [first] = wordsOfSentence(source, 'drie twee een', { ends });
  const nothing = { sourceBegin: null, sourceEnd: null, confidence: null };
  assert.deepEqual(first, { begin: 0, end: 4, ...nothing });
  assert.deepEqual(wordsOfSentence(source, 'drie', undefined), []);
});

function wordsIn(text) {
  return Array.from(text.matchAll(/\S+/gu), ({ 0: word, index }) => [
    index,
    index + word.length,
  ]);
}

async function marked({ text, plain: expected, translation, links }) {
  const { plain, marks } = await readMarks(text, pace);
  if (expected !== undefined) assert.equal(plain, expected);
  const sources = wordsIn(plain);
  const words = wordsIn(translation).map(([begin, end], i) => {
    const [sourceBegin, sourceEnd] = links[i] < 0 ? [0, 0] : sources[links[i]];
    return { begin, end, sourceBegin, sourceEnd, confidence: 1 };
  });
  return putMarks(plain, marks, { text: translation, words }, pace);
}

for (const each of cases.marked) {
  test(`${each.text}: marks go with their words`, async () => {
    assert.equal(await marked(each), each.expected);
  });
}

test('random texts get the marks that Python gives them', async () => {
  assert.ok(setting.random.length >= 300);
  for (const each of setting.random) {
    assert.equal(await marked(each), each.expected, each.text);
  }
});
