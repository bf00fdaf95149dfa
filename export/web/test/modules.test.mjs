/** The modules that need no browser. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';

const setting = JSON.parse(readFileSync(process.env.KERAS_VANILLA_WEB_TEST));
const [description, { doubtsOf }, { halves, sentences }, { translatePieces }, { TranslatorError }, { fetched }, { titleOf }, { anyOf }] =
  await Promise.all(
    ['description', 'doubts', 'sentences', 'long_text', 'errors', 'fetched', 'about', 'pace'].map(
      (name) => import(pathToFileURL(`${setting.page}/${name}.js`)),
    ),
  );
const { readDescription, requireChecksum } = description;
const file = new Uint8Array(readFileSync(setting.file));
const old = new Uint8Array(readFileSync(setting.old));

let state = 1;
const random = (below) => (state = (state * 48271) % 2147483647) % below;

test('the description is the one that Python reads', () => {
  assert.deepEqual(readDescription(file), setting.description);
});

test('a file of version 0.5.0 needs no checksum', async () => {
  assert.equal(readDescription(old).format, 'keras_vanilla translator 1');
  await requireChecksum(old);
});

test('a file cut anywhere is said to be damaged', () => {
  for (let size = 8; size < file.length - 16; size += 997) {
    assert.throws(() => readDescription(file.subarray(0, size)), { code: 'damaged' });
  }
});

test('a file with one other byte is refused, wherever that is', async () => {
  await requireChecksum(file);
  for (let round = 0; round < 200; round++) {
    const bad = file.slice();
    bad[random(round % 2 ? bad.length : 4000)] ^= 1 << random(8);
    const read = async () => readDescription(bad) && requireChecksum(bad);
    await assert.rejects(read, TranslatorError);
  }
});

test('whatever is wrong with a file, nothing but a TranslatorError is thrown', () => {
  for (const description of ['null', '3', '[]', '{}', '"text"', '{"format": {}}']) {
    const bad = file.slice();
    const place = Buffer.from(bad).indexOf('{"format"');
    const size = Buffer.from(bad).indexOf('}', place) + 1 - place;
    bad.set(Buffer.from(description.padEnd(size)), place);
    assert.throws(() => readDescription(bad), { code: 'other-format' }, description);
  }
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

test('a title says the languages once', () => {
  const from = { source_language: 'en', target_language: 'fr' };
  for (const [about, title] of [
    [{ name: 'English numbers and dates in French', ...from }, 'English numbers and dates in French'],
    [{ name: 'Numbers and dates', ...from }, 'Numbers and dates, English to French'],
    [{ name: 'English numbers', ...from }, 'English numbers, English to French'],
    [{ name: 'Numbers', source_language: 'en', target_language: null }, 'Numbers'],
    [{}, 'Translator'],
  ]) {
    assert.equal(titleOf(about), title);
  }
});

/** What `fetched` gives of a server's answer, and what it reports of it. */
async function load(answer, options) {
  const server = createServer((_, response) => answer(response));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const reports = [];
  const onProgress = (progress) => reports.push(progress);
  try {
    const url = `http://127.0.0.1:${server.address().port}/`;
    return { bytes: await fetched(url, { onProgress, ...options }), reports };
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test('progress is reported with the length, where that is stated and true', async () => {
  const body = Buffer.alloc(500_000, 7);
  const answers = {
    stated: (response) => response.setHeader('Content-Length', body.length).end(body),
    chunked: (response) => response.write(body, () => response.end()),
    compressed: (response) => {
      const zipped = gzipSync(body);
      response.setHeader('Content-Encoding', 'gzip').setHeader('Content-Length', zipped.length);
      response.end(zipped);
    },
  };
  for (const [name, answer] of Object.entries(answers)) {
    const { bytes, reports } = await load(answer, { signal: null });
    assert.deepEqual(Buffer.from(bytes), body);
    const total = name === 'stated' ? body.length : null;
    assert.deepEqual(reports.at(-1), { part: 'model', received: body.length, total });
    const sizes = reports.map(({ received }) => received);
    assert.deepEqual(sizes, sizes.toSorted((a, b) => a - b));
  }
});

test('what ends a text may be any value, as the reason of a signal', async () => {
  for (const reason of [null, undefined, 'enough', new DOMException('no', 'AbortError')]) {
    let thrown = 'nothing';
    const pieces = translatePieces('One. Two.', () => Promise.reject(reason));
    await pieces.next().catch((error) => (thrown = error));
    assert.equal(thrown, reason);
  }
});

test('a model that does not arrive whole is missing, and an abort is an abort', async () => {
  const half = (response) => {
    response.setHeader('Content-Length', 1000).write(Buffer.alloc(500), () => response.destroy());
  };
  await assert.rejects(load(half), { code: 'missing', message: /did not arrive whole: http/ });
  const controller = new AbortController();
  const stop = (response) => {
    response.setHeader('Content-Length', 1000).write(Buffer.alloc(500), () => controller.abort('no'));
  };
  await assert.rejects(load(stop, { signal: controller.signal }), (reason) => reason === 'no');
});

test('a signal of several is aborted with the first, also in an older browser', async (t) => {
  const { any } = AbortSignal;
  t.after(() => (AbortSignal.any = any));
  for (AbortSignal.any of [any, undefined]) {
    const [first, second] = [new AbortController(), new AbortController()];
    const both = [first.signal, second.signal];
    const signal = anyOf(both);
    assert.equal(signal.aborted, false);
    second.abort('second');
    first.abort('first');
    assert.deepEqual([signal.reason, anyOf(both).reason], ['second', 'first']);
    assert.throws(() => anyOf([first.signal, 'stop']), TypeError);
  }
});

test('what is kept for use offline is where the module and the runtime are', () => {
  const code = readFileSync(`${setting.page}/offline.js`, 'utf8');
  const listed = (call) => [...runInNewContext(`${code}; ${call}`, { WebAssembly, Uint8Array })];
  const elsewhere = listed("moduleIn('a/', 'b')");
  assert.deepEqual(listed("moduleIn('a/')"), elsewhere.map((path) => path.replace(/^b/, 'a/runtime')));
  assert.match(elsewhere.slice(-2).join(), /^b\/core\/wasm\/(\w+)\.js,b\/core\/wasm\/\1\.wasm$/);
  assert.ok(elsewhere.includes('a/translate.js'));
});

async function sentencesOf(text) {
  const found = [];
  for await (const sentence of sentences(text, async () => {})) found.push(sentence);
  return found;
}

test('what holds the bytes of a model gives them, and says how many have arrived', async () => {
  const bytes = Uint8Array.from({ length: 5000 }, (_, i) => i);
  const holders = [bytes, bytes.subarray(1), bytes.buffer, new Blob([bytes]), new Response(bytes)];
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  holders.unshift(shared);
  for (const model of holders) {
    const reports = [];
    const given = await fetched(model, { onProgress: (progress) => reports.push(progress) });
    const expected = model.byteOffset ? model : bytes;
    assert.deepEqual([given, given.buffer === bytes.buffer], [expected.slice(), false]);
    const { part, received, total } = reports.at(-1);
    assert.deepEqual([part, received, total], ['model', expected.length, null]);
  }
  const missing = { code: 'missing', message: /no model at .*404/ };
  await assert.rejects(fetched(new Response('', { status: 404 })), missing);
  await assert.rejects(fetched(holders.at(-1)), { code: 'missing', message: /read before/ });
  const detached = bytes.slice();
  structuredClone(detached, { transfer: [detached.buffer] });
  await assert.rejects(fetched(detached), { code: 'missing', message: /cannot be read \(.*detached/ });
  const signal = AbortSignal.abort('no');
  await assert.rejects(fetched(new Response(bytes), { signal }), (reason) => reason === 'no');
});

test('texts are cut where a sentence ends', async () => {
  const table = readFileSync(new URL('../../../tests/support/sentences.txt', import.meta.url), 'utf8');
  for (const row of table.split('\n').filter((line) => line && line[0] !== '#')) {
    assert.deepEqual(await sentencesOf(row.replaceAll('|', '')), row.split('|'));
  }
});

test('what speaks against a translation is found in the two texts', () => {
  const table = readFileSync(new URL('../../../tests/support/doubts.tsv', import.meta.url), 'utf8');
  for (const row of table.split('\n').filter((line) => line && line[0] !== '#')) {
    const [source, translation, expected] = row.split('\t');
    assert.equal(doubtsOf(source, translation).join(' '), expected, row);
  }
  const outputs = (probability, known) => doubtsOf('a', 'b', { probability, known });
  assert.deepEqual(outputs(0.59, 0.49), ['unlikely', 'unknown']);
  assert.deepEqual(outputs(0.61, 0.51), []);
});

test('joined sentences and halves are the text, whatever it is', async () => {
  for (const text of setting.texts) {
    assert.equal((await sentencesOf(text)).join(''), text);
    const [left, right] = halves(text);
    assert.ok(left && right);
    assert.equal(left + right, text);
  }
});

test('a sentence is cut after a clause, a word or a character', () => {
  for (const [left, right] of [
    ['Ein Hund rennt, ', 'eine Katze schläft, ja'],
    ['今日は晴れ、', '明日は雨だろう'],
    ['Ein Hund ', 'rennt.'],
    ['fernseh', 'programm'],
    ['สวัสดี', 'ชาวโลก'], // Thai has no spaces
    ['👩‍👩‍👧', '👩‍👩‍👧'],
    ['🇫🇷'.repeat(150), '🇫🇷'.repeat(151)],
    ['x'.repeat(50_000), 'x'.repeat(50_000)],
    [`${'x'.repeat(9_000)}, `, 'y'], // far from the middle
  ]) {
    assert.deepEqual(halves(left + right), [left, right]);
  }
  assert.deepEqual(halves('é'), []);
  assert.deepEqual(halves(''), []);
});

test('what does not fit is translated in pieces, and white space stays', async () => {
  const most = 12;
  const translate = async (text) => {
    if (text.length > most) throw new TranslatorError('too-long', 'Too long.');
    if (text === 'No!') throw new TranslatorError('failed', 'It failed.');
    return { text: text.toUpperCase() };
  };
  const read = async (text) => {
    const pieces = [];
    for await (const piece of translatePieces(text, translate)) pieces.push(piece);
    return pieces;
  };
  const join = (pieces) => pieces.map(({ before, text }) => before + (text ?? '-')).join('');
  for (const [source, target] of [
    ['A dog. A cat.', 'A DOG. A CAT.'],
    ['A dog,  and a cat,\tand one more.\n\n  So.', 'A DOG,  AND A CAT,\tAND ONE MORE.\n\n  SO.'],
    ['  A dog.', '  A DOG.'],
    ['abcdefghijklmnop', 'ABCDEFGH IJKLMNOP'],
    ['今日は晴れ。明日は雨。', '今日は晴れ。明日は雨。'],
    ['Yes. No! Yes.', 'YES. - YES.'],
    ['', ''],
    [' \n ', ''],
  ]) {
    assert.equal(join(await read(source)), target);
  }
  const pieces = await read('A dog. A dog and a cat. No!');
  assert.deepEqual(pieces.map(({ sentence }) => sentence), [0, 1, 1, 2]);
  assert.equal(pieces.at(-1).error.code, 'failed');
});
