/** What waits for the worker, with a worker that answers when the test says so. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

const setting = JSON.parse(readFileSync(process.env.KERAS_VANILLA_WEB_TEST));
const load = (name) => import(pathToFileURL(`${setting.page}/${name}.js`));
const [{ openTranslator, Translator }, { SentenceQueue }, inBrowser, inNode] =
  await Promise.all(['translator', 'sentence_queue', 'translate', 'node'].map(load));
const { openInside, InsideModel } = await load('inside/model');
const { install, translatorOver } = await load('polyfill');
const END_ID = 5;

/** A translator into capitals; `worker.begun` are the sentences that its worker was given. */
function capitals(ids = [7, END_ID, 0]) {
  const reply = (text) => {
    const bytes = new TextEncoder().encode(text.toUpperCase());
    const data = { result: { bytes, ids, score: -1, milliseconds: 2 } };
    setImmediate(() => worker.onmessage({ data }));
  };
  const worker = {
    begun: [],
    answers: false,
    postMessage: ({ text }) => {
      worker.begun.push(text);
      if (worker.answers) reply(text);
    },
    terminate: () => {},
    /** Answers the sentence that has begun, and all later ones. */
    answer() {
      worker.answers = true;
      worker.begun.slice(-1).forEach(reply);
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
  worker.answer();
  const { text, truncated, milliseconds, pieces } = await result;
  assert.equal(text, 'A DOG. A CAT!\n\nA BIRD? YES.');
  assert.deepEqual(worker.begun, ['A dog.', 'A cat!', 'A bird?', 'Yes.']);
  assert.deepEqual([truncated, milliseconds, pieces.length], [false, 8, 4]);
});

test('a sentence that is too long is split, which is told', async () => {
  const { worker, translator } = capitals();
  const long = `A dog runs, ${'and runs, '.repeat(6)}and runs.`;
  const results = Promise.all(['A dog. A cat.', long].map((text) => translator.translate(text)));
  worker.answer();
  const [short, parted] = await results;
  assert.equal(parted.text, long.toUpperCase());
  assert.deepEqual([short.split, parted.split], [false, true]);
});

test('a translation without its end is truncated, and so is the text', async () => {
  const { worker, translator } = capitals([7, 8, 0]);
  const result = translator.translate('A dog.');
  worker.answer();
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
  worker.answer();
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
  worker.answer();
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
  worker.answer();
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

/**
 * A translator whose worker answers at once, at a clock that goes on by a millisecond each time
 * somebody looks; `turns` counts the chances to paint.
 */
function hurried(t) {
  let clock = 0;
  t.mock.method(performance, 'now', () => (clock += 1));
  const { worker, translator } = capitals();
  worker.postMessage = ({ text }) => {
    const bytes = new TextEncoder().encode(text.toUpperCase());
    const count = text.split(' ').length;
    const ends = Int32Array.from({ length: count }, (_, i) => bytes.length - count + i + 1);
    const tokens = { ends, spans: new Int32Array(2 * count) };
    const result = { bytes, ids: [7, END_ID], score: -1, milliseconds: 2, tokens };
    queueMicrotask(() => worker.onmessage({ data: { result } }));
  };
  const seen = { turns: 0 };
  const count = () => {
    seen.turns += 1;
    seen.next = setImmediate(count);
  };
  count();
  t.after(() => clearImmediate(seen.next));
  return { translator, seen };
}

const SENTENCE = 'The cat sees the dog. ';
const LONG_LOOPS = {
  'a remembered text': (translator, options) => translator.translate(SENTENCE.repeat(500), options),
  'a remembered text with tags': (translator, options) =>
    translator.translateMarked(`<b>${SENTENCE}</b>`.repeat(500), options),
  'many remembered texts at once': (translator, options) =>
    Promise.all(Array.from({ length: 500 }, () => translator.translate(SENTENCE, options))),
  'lines without words': (translator, options) => translator.translate('\n'.repeat(500), options),
  'a sentence that might end anywhere': (translator, options) =>
    translator.translate(' e.g.'.repeat(500), options),
  'a word of many letters': (translator, options) => translator.translate('x'.repeat(20_000), options),
};

for (const [name, call] of Object.entries(LONG_LOOPS)) {
  test(`${name}: the page paints meanwhile, and an abort ends it`, async (t) => {
    const { translator, seen } = hurried(t);
    await translator.translate(SENTENCE);
    const before = seen.turns;
    await call(translator);
    assert.ok(seen.turns - before > 10, `${seen.turns - before} turns`);

    const controller = new AbortController();
    setImmediate(() => controller.abort('enough'));
    await assert.rejects(call(translator, controller), (reason) => reason === 'enough');
  });
}

test('a loop over remembered sentences lets the page paint', async (t) => {
  const { translator, seen } = hurried(t);
  for (let i = 0; i < 500; i++) await translator.translateSentence(SENTENCE);
  assert.ok(seen.turns > 10, `${seen.turns} turns`);
});

test('the steps that the inside page has kept let it paint', async (t) => {
  const { seen } = hurried(t);
  const worker = {
    postMessage: () =>
      queueMicrotask(() => worker.onmessage({ data: { result: { logits: Float32Array.of(0, 1) } } })),
    terminate: () => {},
  };
  const inside = new InsideModel(new SentenceQueue(worker), {}, { startId: 1 }, 9);
  for (let i = 0; i < 500; i++) await inside.step('a', []);
  assert.ok(seen.turns > 10, `${seen.turns} turns`);
});

test('of two texts with tags the later one replaces the other, however long that is', async () => {
  const { worker, translator } = capitals();
  const texts = [`<b>A dog.</b> ${'3.14 '.repeat(99)}`, 'A cat.'];
  const calls = texts.map((text) => translator.translateMarked(text, { replaces: 'typed' }));
  worker.answer();
  assert.deepEqual(await Promise.allSettled(calls).then(([a, b]) => [a.reason?.code, b.value]), [
    'replaced',
    'A CAT.',
  ]);
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

const OF_NO_TEXT = [null, undefined, 7, NaN, true, new Uint8Array(3), ['a'], {}, Symbol('a'), () => {}];
const NO_OPTIONS = [null, 7, 'options', { signal: 7 }, { signal: {} }];
const isRefused = (call) => assert.rejects(async () => call(), { code: 'wrong-type' });

test('a text of another type is refused by every method, and its options are', async () => {
  const { worker, translator } = capitals();
  const inside = new InsideModel(new SentenceQueue(worker), {}, { startId: 1 }, 9);
  const methods = ['translate', 'translateMarked', 'translateSentence', 'pieces'];
  const calls = methods.map((name) => (...args) => translator[name](...args));
  for (const text of OF_NO_TEXT) {
    for (const call of [...calls, inside.encode.bind(inside), (text) => inside.step(text, [])]) {
      await isRefused(() => call(text));
    }
  }
  for (const options of NO_OPTIONS) {
    for (const call of calls) await isRefused(() => call('A dog.', options));
  }
  for (const ids of [null, undefined, 7, '7', {}]) await isRefused(() => inside.step('a', ids));
  assert.deepEqual(worker.begun, []);
});

test('a model of another type is refused, and its options are', async () => {
  const bytes = new Uint8Array(9);
  for (const open of [inBrowser.loadTranslator, inNode.loadTranslator, openInside]) {
    if (open === openInside) await isRefused(() => open(bytes, 'http://a/'));
    for (const model of [null, undefined, 7, true, ['a'], {}, new Float32Array(9)]) {
      await isRefused(() => open(model, open === openInside ? 'http://a/' : undefined));
    }
    for (const options of [...NO_OPTIONS, { onProgress: 7 }]) {
      const runtime = open === openInside ? ['http://a/'] : [];
      await isRefused(() => open(bytes, ...runtime, options));
    }
  }
  for (const runtime of [7, null, {}]) {
    const missing = new Response('', { status: 404 }); // must not fail by itself beside it
    await isRefused(() => inNode.loadTranslator(missing, { runtime }));
    await new Promise(setImmediate);
  }
  await assert.rejects(openInside('a', 'no URL'), { code: 'runtime' });
  for (const call of [install, translatorOver]) {
    for (const manifest of [null, undefined, 7, ['a'], {}, bytes]) {
      await isRefused(() => call(manifest));
    }
    const wrong = [{ inputQuota: '9' }, { inputQuota: null }, { userActivation: 1 }];
    for (const options of [...NO_OPTIONS, ...wrong]) {
      await isRefused(() => call('translators.json', options));
    }
  }
  for (const prefer of ['mine', null, true, Symbol('own')]) {
    await isRefused(() => install('translators.json', { prefer }));
  }
});

test('a worker that does not start is not called a damaged file', async () => {
  const file = new Uint8Array(readFileSync(setting.file));
  const silent = { postMessage: () => silent.onerror({}), terminate: () => {} };
  const refused = () => {
    throw new DOMException('of another origin', 'SecurityError');
  };
  for (const start of [() => silent, refused]) {
    const message = /worker did not start: .* \(.+\)\.$/;
    await assert.rejects(openTranslator(file.slice(), start, 'a/'), { code: 'runtime', message });
    const missing = Promise.reject(Error('beside it'));
    await assert.rejects(openTranslator(missing, start, 'a/'));
  }
  const answer = { error: { code: 'failed', message: 'no memory' } };
  const worker = { postMessage: () => worker.onmessage({ data: answer }), terminate: () => {} };
  await assert.rejects(openTranslator(file.slice(), () => worker, 'a/'), { code: 'damaged' });
});
