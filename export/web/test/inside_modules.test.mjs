/** The modules of the page that looks inside which need no browser. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

const setting = JSON.parse(readFileSync(process.env.KERAS_VANILLA_WEB_TEST));
const [search, { Vocabulary }, { treeOf }, { withoutEach }, { alignmentLayer }] =
  await Promise.all(
    ['search', 'vocabulary', 'tree', 'leave_out', 'attended'].map(
      (name) => import(pathToFileURL(`${setting.page}/inside/${name}.js`)),
    ),
  );
const { beamSearch, best, continuations, drawn, logSoftmax, ranked } = search;

/** A function from ids to log-probabilities, by their number and the last one. */
const next = (table) => async (ids) => {
  return logSoftmax(table[ids.length][ids.at(-1) ?? setting.startId]);
};

test('beam search finds what Python finds', async () => {
  assert.ok(setting.searches.length >= 50);
  for (const { table, beams, limit, lengthPenalty, expected } of setting.searches) {
    let kept;
    const settings = { beams, endId: setting.endId, limit, lengthPenalty };
    for await (const each of beamSearch(next(table), settings)) kept = each;
    const found = ranked(kept);
    assert.deepEqual(found.map(({ ids }) => ids), expected.map(({ ids }) => ids));
    found.forEach(({ score }, i) => assert.ok(Math.abs(score - expected[i].score) < 1e-4));
  }
});

test('one beam is what continuations choose', async () => {
  for (const { table, limit } of setting.searches.slice(0, 20)) {
    const settings = { endId: setting.endId, limit };
    let ids = [];
    for await (const more of continuations(next(table), [], settings)) ids = more;
    let kept;
    const one = { ...settings, beams: 1, lengthPenalty: 0.6 };
    for await (const each of beamSearch(next(table), one)) kept = each;
    assert.deepEqual(ids, kept[0].ids);
    const forced = [ids[0] === 4 ? 5 : 4];
    let all = forced;
    for await (const more of continuations(next(table), forced, settings)) all = more;
    assert.deepEqual(all.slice(0, 1), forced);
    assert.ok(all.at(-1) === setting.endId || all.length === limit);
  }
});

test('the best are the first of those that are equal, in order', () => {
  assert.deepEqual(best([1, 3, 3, 2, 3], 3), [1, 2, 4]);
  assert.deepEqual(best([1, 2], 5), [1, 0]);
});

test('a temperature sharpens or flattens, and a draw follows the probabilities', () => {
  const logits = [2, 1, 0, -Infinity];
  const [cold, plain, warm] = [0.5, 1, 2].map((t) => logSoftmax(logits, t).map(Math.exp));
  for (const shares of [cold, plain, warm]) {
    assert.ok(Math.abs(shares.reduce((sum, each) => sum + each, 0) - 1) < 1e-9);
  }
  assert.ok(cold[0] > plain[0] && plain[0] > warm[0]);
  const counts = [0, 0, 0, 0];
  for (let i = 0; i < 1000; i++) counts[drawn(logSoftmax(logits), i / 1000)] += 1;
  counts.forEach((count, i) => assert.ok(Math.abs(count / 1000 - plain[i]) < 0.002));
  assert.equal(drawn(logSoftmax(logits), 1 - 1e-17), 2); // never the impossible one
});

test('pieces make the text that Python decodes', () => {
  const vocabulary = new Vocabulary(setting.vocabulary, setting.endId);
  assert.ok(setting.decoded.length >= 200);
  for (const { ids, text } of setting.decoded) assert.equal(vocabulary.text(ids), text);
  assert.equal(vocabulary.name(setting.endId), '⟨end⟩');
});

test('the tree has each hypothesis once, and says what became of it', () => {
  const one = (ids, finished = false) => ({ ids, finished, logProb: -ids.length });
  const root = treeOf([
    [one([4]), one([5])],
    [one([4, 6]), one([4, 3], true)],
    [one([4, 3], true), one([4, 6, 7])],
  ]);
  const names = (node) => [`${node.ids.join('.')} ${node.kind}`, ...node.children.flatMap(names)];
  assert.deepEqual(names(root), [
    ' live',
    '4 live',
    '4.6 live',
    '4.6.7 live',
    '4.3 ended',
    '5 gone',
  ]);
  assert.deepEqual(treeOf([]).children, []);
});

test('each word is left out once, and of a single word each piece', () => {
  const rests = (text, tokens = []) => withoutEach({ text, tokens }).map(({ rest }) => rest);
  assert.deepEqual(rests('Ein Hund rennt.'), ['Hund rennt.', 'Ein rennt.', 'Ein Hund']);
  assert.deepEqual(rests('Hund Hund'), ['Hund', 'Hund']);
  const tokens = [['犬', 0, 1], ['が', 1, 2], ['⟨end⟩', 2, 2]];
  const pieces = tokens.map(([name, begin, end]) => ({ name, begin, end }));
  assert.deepEqual(rests('犬が', pieces), ['が', '犬']);
});

test('the layer that aligns is Python\'s', () => {
  setting.alignmentLayers.forEach((layer, i) => assert.equal(alignmentLayer(i + 1), layer));
});
