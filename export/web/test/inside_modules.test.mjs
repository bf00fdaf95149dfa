/** The modules of the page that looks inside which need no browser. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

const setting = JSON.parse(readFileSync(process.env.KERAS_VANILLA_WEB_TEST));
const [search, { Vocabulary }, { treeOf }, { decides, withoutEach }, { alignmentLayer }, { placeAfter }] =
  await Promise.all(
    ['search', 'vocabulary', 'tree', 'leave_out', 'attended', 'pieces'].map(
      (name) => import(pathToFileURL(`${setting.page}/inside/${name}.js`)),
    ),
  );
const { beamSearch, best, continuations, drawn, logSoftmax, nucleus, ranked } = search;

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

test('a nucleus is Python\'s', () => {
  assert.ok(setting.nuclei.length >= 50);
  for (const { logits, topP, kept } of setting.nuclei) {
    const logProbs = nucleus(logSoftmax(logits), topP);
    const possible = [...logProbs.keys()].filter((id) => logProbs[id] > -Infinity);
    assert.deepEqual(possible, kept);
    const sum = logProbs.reduce((total, each) => total + Math.exp(each), 0);
    assert.ok(Math.abs(sum - 1) < 1e-9);
  }
});

/** Ids that are drawn evenly, of which most pieces are bytes. */
async function drawEvenly(vocabulary, limit, seed) {
  let state = seed;
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
  const choose = (logProbs, ids) => {
    const room = limit - ids.length - 1;
    const whole = vocabulary.withWholeCharacters(logProbs, ids, room);
    return drawn(logSoftmax(whole), random());
  };
  const next = async () => new Float64Array(vocabulary.pieces.length);
  let ids = [];
  const settings = { endId: vocabulary.endId, limit, choose };
  for await (const more of continuations(next, [], settings)) ids = more;
  return ids;
}

test('what is drawn at random has no half characters', async () => {
  const vocabulary = new Vocabulary(setting.vocabulary, setting.endId);
  const name = (id) => vocabulary.pieces[id];
  let bytes = 0;
  for (let seed = 1; seed <= 300; seed++) {
    const ids = await drawEvenly(vocabulary, 1 + (seed % 12), seed);
    bytes += ids.filter((id) => /^<0x[89A-F]/.test(name(id))).length;
    assert.ok(!ids.includes(vocabulary.startId), ids.join());
    const octets = ids.filter((id) => id !== vocabulary.endId).map(name).map((piece) => {
      const [, digits] = /^<0x(..)>$/.exec(piece) ?? [];
      return digits ? Buffer.from(digits, 'hex') : Buffer.from(piece);
    });
    new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(octets)); // or it throws
    assert.doesNotMatch(vocabulary.text(ids), /\ufffd|⟨byte/u);
  }
  assert.ok(bytes > 300, `${bytes} bytes of longer characters`);
});

test('bytes that make no character are named, not replaced', () => {
  const pieces = ['<pad>', '<unk>', '<s>', '</s>', '▁', '▁Hund', '<0xC3>', '<0xA9>', 'e', '<0x41>'];
  const vocabulary = new Vocabulary({ start_id: 2, pad_id: 0, pieces }, 3);
  for (const [ids, text] of [
    [[5, 6, 7, 8, 3], 'Hundée'],
    [[5, 6], 'Hund⟨byte C3⟩'],
    [[5, 7, 8], 'Hund⟨byte A9⟩e'],
    [[6, 6, 7], '⟨byte C3⟩é'],
    [[6, 8], '⟨byte C3⟩e'],
    [[9, 4, 9], 'A A'],
  ]) {
    assert.equal(vocabulary.text(ids), text);
  }
  const names = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((id) => vocabulary.name(id));
  assert.deepEqual(names.slice(2, 7), ['⟨start⟩', '⟨end⟩', '⟨space⟩', 'Hund', '⟨byte C3⟩']);
});

test('the code of a language is known by its brackets', () => {
  const pieces = ['<pad>', '>>fra<<', '▁', '▁>>', 'a'];
  const vocabulary = new Vocabulary({ start_id: 0, pad_id: 0, pieces }, 0);
  assert.deepEqual([0, 1, 2, 3, 4, 5].filter((id) => vocabulary.isCode(id)), [1]);
});

test('where translations part is never between empty quotes', () => {
  const pieces = ['<pad>', '<unk>', '<s>', '</s>', '▁', '▁Hund'];
  const vocabulary = new Vocabulary({ start_id: 2, pad_id: 0, pieces }, 3);
  assert.equal(placeAfter(vocabulary, []), 'at the beginning');
  assert.equal(placeAfter(vocabulary, [4]), 'after “⟨space⟩”');
  assert.equal(placeAfter(vocabulary, [4, 4]), 'after “⟨space⟩ ⟨space⟩”');
  assert.equal(placeAfter(vocabulary, [4, 5]), 'after “Hund”');
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
  assert.deepEqual(rests('Ein Hund rennt.'), ['Hund rennt.', 'Ein rennt.', 'Ein Hund.']);
  assert.deepEqual(rests('Hund Hund'), ['Hund', 'Hund']);
  assert.deepEqual(rests("It didn't, no!"), ["didn't, no!", 'It, no!', "It didn't,!"]);
  const tokens = [['犬', 0, 1], ['が', 1, 2], ['⟨end⟩', 2, 2]];
  const pieces = tokens.map(([name, begin, end]) => ({ name, begin, end }));
  assert.deepEqual(rests('犬が', pieces), ['が', '犬']);
});

test('the word that matters most is named, unless no single word decides', () => {
  const least = { word: 'Hund', share: 0.2 };
  const matters = '“Hund” matters most: without it, “dog” has 20 % instead of 90 %.';
  assert.equal(decides('“dog”', 0.9, least), matters);
  const none = 'No single word decides “dog”: whichever is left out, it keeps at least 20 %.';
  assert.equal(decides('“dog”', 0.4, least), none);
});

test('the layer that aligns is Python\'s', () => {
  setting.alignmentLayers.forEach((layer, i) => assert.equal(alignmentLayer(i + 1), layer));
});
