/** What waits for the worker, with a worker that answers when the test says so. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

const setting = JSON.parse(readFileSync(process.env.KERAS_VANILLA_WEB_TEST));
const load = (name) => import(pathToFileURL(`${setting.page}/${name}.js`));
const [{ Translator }, { SentenceQueue }] = await Promise.all(
  ['translator', 'sentence_queue'].map(load),
);
const END_ID = 5;

/** When all that can go on by itself has done so. */
const turn = () => new Promise(setImmediate);

/** A translator into capitals; `worker.begun` are the sentences that its worker was given. */
function capitals(ids = [7, END_ID, 0]) {
  const worker = {
    begun: [],
    postMessage: ({ text }) => worker.begun.push(text),
    terminate: () => {},
    /** Answers one after the other, until nothing waits any more. */
    async answer() {
      await turn();
      for (const text of worker.begun) {
        const bytes = new TextEncoder().encode(text.toUpperCase());
        worker.onmessage({ data: { result: { bytes, ids, score: -1, milliseconds: 2 } } });
        await turn();
      }
    },
  };
  const description = { max_source_tokens: 9, end_id: END_ID };
  return { worker, translator: new Translator(new SentenceQueue(worker), description, 40) };
}

const codes = async (promises) =>
  (await Promise.allSettled(promises)).map(({ reason, value }) =>
    value ? value.text : (reason.code ?? reason),
  );

test('a text of several paragraphs is translated sentence by sentence and joined', async () => {
  const { worker, translator } = capitals();
  const result = translator.translate('A dog. A cat!\n\nA bird? Yes.\n');
  await worker.answer();
  const { text, truncated, milliseconds, pieces } = await result;
  assert.equal(text, 'A DOG. A CAT!\n\nA BIRD? YES.');
  assert.deepEqual(worker.begun, ['A dog.', 'A cat!', 'A bird?', 'Yes.']);
  assert.deepEqual([truncated, milliseconds, pieces.length], [false, 8, 4]);
});

test('a sentence that is too long is split, which is told', async () => {
  const { worker, translator } = capitals();
  const long = `A dog runs, ${'and runs, '.repeat(6)}and runs.`;
  const results = Promise.all(['A dog. A cat.', long].map((text) => translator.translate(text)));
  await worker.answer();
  const [short, parted] = await results;
  assert.equal(parted.text, long.toUpperCase());
  assert.deepEqual([short.split, parted.split], [false, true]);
});

test('a translation without its end is truncated, and so is the text', async () => {
  const { worker, translator } = capitals([7, 8, 0]);
  const result = translator.translate('A dog.');
  await worker.answer();
  const { truncated, pieces } = await result;
  assert.deepEqual([truncated, pieces[0].truncated], [true, true]);
});

test('an aborted request that has not begun never begins', async () => {
  const { worker, translator } = capitals();
  const controller = new AbortController();
  const { signal } = controller;
  const results = codes([
    translator.translateSentence('one'),
    translator.translateSentence('two', { signal }),
    translator.translateSentence('three'),
  ]);
  controller.abort('not wanted');
  await worker.answer();
  assert.deepEqual(await results, ['ONE', 'not wanted', 'THREE']);
  assert.deepEqual(worker.begun, ['one', 'three']);
  assert.deepEqual(await codes([translator.translate('four', { signal })]), ['not wanted']);
});

test('an aborted request that has begun rejects at once, and is remembered', async () => {
  const { worker, translator } = capitals();
  const controller = new AbortController();
  const one = translator.translateSentence('one', { signal: controller.signal });
  await Promise.resolve();
  controller.abort('not wanted');
  assert.deepEqual(await codes([one]), ['not wanted']); // before the worker answers
  const again = translator.translateSentence('one');
  await worker.answer();
  assert.equal((await again).text, 'ONE');
  assert.deepEqual(worker.begun, ['one']);
});

test('a request replaces the earlier ones of the same name, and no others', async () => {
  const { worker, translator } = capitals();
  const texts = ['A', 'A dog.', 'A dog. A cat.'];
  const results = codes([
    ...texts.map((text) => translator.translate(text, { replaces: 'typed' })),
    translator.translate('Yes.', { replaces: 'chosen' }),
    translator.translate('No.'),
  ]);
  await worker.answer();
  const replaced = ['replaced', 'replaced', 'A DOG. A CAT.'];
  assert.deepEqual(await results, [...replaced, 'YES.', 'NO.']);
  assert.ok(!worker.begun.includes(texts[2])); // sentence by sentence, as the others
});

test('an error of a sentence rejects the text, and is one piece of its pieces', async () => {
  const { worker, translator } = capitals();
  worker.postMessage = () => {
    worker.onmessage({ data: { error: { code: 'failed', message: 'It failed.' } } });
  };
  assert.deepEqual(await codes([translator.translate('A dog.')]), ['failed']);
  const pieces = [];
  for await (const piece of translator.pieces('A dog. A cat.')) pieces.push(piece);
  assert.deepEqual(pieces.map(({ error }) => error.code), ['failed', 'failed']);
});

test('close() rejects what runs, what waits and what comes later', async () => {
  const { translator } = capitals();
  const before = ['one', 'two. Three.', 'three'].map((text) => translator.translate(text));
  translator.close();
  translator.close();
  const later = [translator.translate('one'), translator.translateSentence('one')];
  const all = await codes([...before, ...later]);
  assert.deepEqual(all, Array(5).fill('closed'));
  const pieces = translator.pieces('one');
  await assert.rejects(pieces.next(), { code: 'closed' });
});

test('a worker that ends by itself fails what waits', async () => {
  const { worker, translator } = capitals();
  const results = codes([translator.translate('one'), translator.translateSentence('two')]);
  await Promise.resolve();
  worker.onerror({ message: 'out of memory' });
  assert.deepEqual(await results, ['failed', 'failed']);
});
