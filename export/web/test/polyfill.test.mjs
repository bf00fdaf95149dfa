/** polyfill.js in a browser: what it downloads and keeps, its errors and its ends. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Host, MODEL, openTab, PAGE, PAIR, prepare, setting, TYPES } from './host.mjs';

const DAMAGED = MODEL.with(MODEL.length >> 1, MODEL[MODEL.length >> 1] ^ 1);
const [[SOURCE, TARGET]] = setting.texts;
const [TEXT, TRANSLATION] = [0, 1].map((i) => setting.texts.map((pair) => pair[i]).join('\n'));

test('a translator is downloaded once, with its progress, and translates', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  assert.equal(await tab.evaluate(() => Own.availability(pair)), 'downloadable');
  assert.equal(host.count('/en-nl.tflite'), 0);
  const seen = await tab.evaluate(async (text) => {
    const events = [];
    let target;
    const monitor = (m) => {
      m.addEventListener('downloadprogress', (event) => events.push(event));
      m.ondownloadprogress = (event) => (m.last = event.loaded);
      target = m;
    };
    const translator = await Own.create({ ...pair, monitor });
    const chunks = [];
    for await (const chunk of translator.translateStreaming(text)) chunks.push(chunk);
    return {
      translator: `${translator}`,
      isOne: translator instanceof Own,
      languages: [translator.sourceLanguage, translator.targetLanguage],
      quota: [translator.inputQuota === Infinity, await translator.measureInputUsage(text)],
      loaded: events.map((event) => event.loaded),
      last: target.last,
      monitor: target instanceof EventTarget,
      events: events.map((e) => [e.constructor.name, e.type, e.total, e.lengthComputable]),
      chunks,
      text: await translator.translate(text),
      nothing: await Promise.all(['', ' \r\n\t', '\u0001'].map((x) => translator.translate(x))),
    };
  }, TEXT);
  assert.equal(seen.translator, '[object Translator]');
  assert.ok(seen.isOne && seen.monitor);
  assert.deepEqual(seen.languages, ['en', 'nl']);
  assert.deepEqual(seen.quota, [true, 0]);
  assert.deepEqual([seen.loaded[0], seen.loaded.at(-1), seen.last], [0, 1, 1]);
  assert.deepEqual(seen.loaded, [...new Set(seen.loaded)].toSorted((a, b) => a - b));
  assert.ok(seen.loaded.every((loaded) => Number.isInteger(loaded * 0x10000)));
  for (const event of seen.events) {
    assert.deepEqual(event, ['ProgressEvent', 'downloadprogress', 1, true]);
  }
  assert.equal(seen.chunks.length, setting.texts.length);
  assert.deepEqual([seen.chunks.join(''), seen.text], [TRANSLATION, TRANSLATION]);
  assert.deepEqual(seen.nothing, ['', ' \r\n\t', '\u0001']);

  assert.equal(await tab.evaluate(() => Own.availability(pair)), 'available');
  const again = await host.tab();
  assert.equal(await again.evaluate((text) => translate(text), SOURCE), TARGET);
  assert.equal(host.count('/en-nl.tflite'), 1);
  const events = await again.evaluate(async () => {
    const loaded = [];
    const monitor = (m) => (m.ondownloadprogress = (event) => loaded.push(event.loaded));
    (await Own.create({ ...pair, monitor })).destroy();
    return loaded;
  });
  assert.deepEqual(events, [0, 1]);
});

test('it has the names of the browser, and refuses what the browser refuses', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  const seen = await tab.evaluate(async () => {
    const names = (Class) => {
      const owners = [Class.prototype, Object.getPrototypeOf(Class.prototype)];
      return owners.flatMap((owner) => Object.getOwnPropertyNames(owner));
    };
    const refusals = async (Class) => {
      const aborted = AbortSignal.abort();
      const [from, to] = Object.entries(pair).map(([name, tag]) => ({ [name]: tag }));
      const calls = [
        () => new Class(),
        () => Class.availability(),
        () => Class.availability(null),
        () => Class.availability('en'),
        () => Class.availability(from),
        () => Class.availability(to),
        () => Class.availability({ ...pair, sourceLanguage: 'not a tag' }),
        () => Class.availability({ ...pair, targetLanguage: '' }),
        () => Class.availability({ ...pair, sourceLanguage: null }),
        () => Class.availability({ ...pair, sourceLanguage: 'xx' }),
        () => Class.create(),
        () => Class.create({ ...pair, sourceLanguage: 'en_US' }),
        () => Class.create({ ...pair, signal: 'stop' }),
        () => Class.create({ ...pair, monitor: 'progress' }),
        () => Class.create({ ...pair, signal: aborted }),
        () => Class.create({ ...pair, signal: AbortSignal.abort('a reason') }),
        () => Class.create({ ...pair, monitor: () => { throw new Error('of a monitor'); } }),
        () => Class.create({ ...pair, targetLanguage: 'xx' }),
      ];
      const outcomes = await Promise.all(calls.map(outcome));
      return outcomes.map(({ name, type, thrown }) => thrown ?? `${type} ${name}`);
    };
    return {
      own: { names: names(Own), refusals: await refusals(Own) },
      native: globalThis.Translator && {
        names: names(Translator).filter((name) => !(name in Object.prototype)),
        refusals: await refusals(Translator),
      },
      promises: ['availability', 'create'].map((name) => Own[name]().catch(() => {}) instanceof Promise),
    };
  });
  const { names, refusals } = seen.own;
  const type = 'TypeError TypeError';
  const range = 'RangeError RangeError';
  assert.deepEqual(refusals, [
    ...[type, type, type, type, type, type, range, range, range, 'undefined undefined'],
    ...[type, range, type, type, 'DOMException AbortError', 'a reason', 'Error Error'],
    'DOMException NotSupportedError',
  ]);
  assert.deepEqual(seen.promises, [true, true]);
  if (!seen.native) return;
  assert.deepEqual(seen.native.names.filter((name) => !names.includes(name)), []);
  assert.deepEqual(seen.native.refusals, refusals);
});

test('a pair is matched as the tags of `Intl` are', async () => {
  const host = await Host.open();
  host.lists([
    ...['zh-Hans', 'zh-Hant', 'pt-BR', 'fr', 'fr-CA'].map((targetLanguage) =>
      host.entry(`${targetLanguage}.tflite`, { sourceLanguage: 'EN', targetLanguage })),
  ]);
  const tab = await host.tab();
  const found = (pairs) =>
    tab.evaluate(async (pairs) => {
      const { bestPair, canonical } = await import('/translator/languages.js');
      const { Manifest } = await import('/translator/manifest.js');
      const list = await new Manifest('translators.json').pairs();
      return pairs.map(([source, target]) => {
        const wanted = { sourceLanguage: canonical(source), targetLanguage: canonical(target) };
        const { sourceLanguage, targetLanguage } = bestPair(list, wanted) ?? {};
        return `${sourceLanguage} ${targetLanguage}`;
      });
    }, pairs);
  const expected = {
    'zh-Hans': ['zh', 'zh-CN', 'zh-Hans-TW', 'ZH-hans'],
    'zh-Hant': ['zh-TW', 'zh-HK'],
    'pt-BR': ['pt', 'pt-PT', 'pt-Latn'],
    fr: ['fr-CH', 'fr-FR', 'fr-x-private'],
    'fr-CA': ['fr-CA', 'fr-ca-u-nu-latn'],
    undefined: ['und', 'de', 'zh-Latn', 'fra-Cyrl'],
  };
  for (const [target, wanted] of Object.entries(expected)) {
    const source = target === 'undefined' ? undefined : 'en';
    const pairs = ['en', 'en-GB', 'en-Latn-x-slang'].flatMap((from) => wanted.map((to) => [from, to]));
    assert.deepEqual(new Set(await found(pairs)), new Set([`${source} ${target}`]), target);
  }
  const identity = await tab.evaluate(async () => {
    const pair = { sourceLanguage: 'de-at', targetLanguage: 'de' };
    const loaded = [];
    const monitor = (m) => (m.ondownloadprogress = (event) => loaded.push(event.loaded));
    const translator = await Own.create({ ...pair, monitor });
    return [
      await Own.availability(pair),
      translator.sourceLanguage,
      await translator.translate('Ein Hund.'),
      loaded,
    ];
  });
  assert.deepEqual(identity, ['available', 'de-AT', 'Ein Hund.', [0, 1]]);
});

test('two pages at once download it once', async () => {
  const host = await Host.open();
  const [first, second] = [await host.tab(), await host.tab()];
  const asked = host.holds('/en-nl.tflite', MODEL);
  const begin = (tab) => tab.evaluate((text) => { globalThis.begun = translate(text); }, SOURCE);
  await begin(first);
  const { rest } = await asked;
  assert.equal(await second.evaluate(() => Own.availability(pair)), 'downloading');
  await begin(second);
  rest();
  for (const tab of [first, second]) assert.equal(await tab.evaluate(() => begun), TARGET);
  assert.equal(host.count('/en-nl.tflite'), 1);
});

test('a download that is aborted ends, and another page begins its own', async () => {
  const host = await Host.open();
  const [first, second] = [await host.tab(), await host.tab()];
  const asked = host.holds('/en-nl.tflite', MODEL);
  await first.evaluate(() => {
    globalThis.loaded = [];
    globalThis.controller = new AbortController();
    const { signal } = controller;
    const monitor = (m) => (m.ondownloadprogress = (event) => loaded.push(event.loaded));
    globalThis.begun = outcome(() => Own.create({ ...pair, signal, monitor }));
  });
  const { ended } = await asked;
  await second.evaluate((text) => { globalThis.begun = translate(text); }, SOURCE);
  host.offers('/en-nl.tflite', MODEL);
  const aborted = await first.evaluate(async () => {
    controller.abort('no more');
    return [await begun, Math.max(...loaded) < 1];
  });
  assert.deepEqual(aborted, [{ thrown: 'no more' }, true]);
  await ended;
  assert.equal(await second.evaluate(() => begun), TARGET);
  assert.equal(await first.evaluate((text) => translate(text), SOURCE), TARGET);
  assert.equal(host.count('/en-nl.tflite'), 2);
});

test('a translation that is aborted ends, and the next one does not', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  const seen = await tab.evaluate(async ([text, sentence]) => {
    const translator = await Own.create(pair);
    const names = [];
    const calls = [
      (signal) => translator.translate(text, { signal }),
      (signal) => translator.measureInputUsage(text, { signal }),
      (signal) => translator.translate(' ', { signal }),
      (signal) => translator.translateStreaming(text, { signal }).pipeTo(new WritableStream()),
    ];
    for (const call of calls) {
      for (const reason of [undefined, 'a reason']) {
        const controller = new AbortController();
        const begun = outcome(() => call(controller.signal));
        controller.abort(reason);
        const later = outcome(() => call(controller.signal));
        for (const { name, thrown } of await Promise.all([begun, later])) names.push(name ?? thrown);
      }
    }
    const controller = new AbortController();
    const stream = translator.translateStreaming(text, { signal: controller.signal });
    const reader = stream.getReader();
    const { value } = await reader.read();
    controller.abort('in the middle');
    const inside = await outcome(() => reader.read());
    const canceled = translator.translateStreaming(text).getReader();
    await canceled.read();
    await canceled.cancel();
    const { done } = await canceled.read();
    return { names, value, inside, done, after: await translator.translate(sentence) };
  }, [TEXT, SOURCE]);
  const [one, two] = ['AbortError', 'a reason'];
  assert.deepEqual(seen.names, Array(4).fill([one, one, two, two]).flat());
  assert.deepEqual(seen.inside, { thrown: 'in the middle' });
  assert.deepEqual([seen.value, seen.done], [TARGET, true]);
  assert.equal(seen.after, TARGET);
});

test('a translator that is destroyed, or whose creator aborts, translates no more', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  const ends = await tab.evaluate(async (text) => {
    const ends = [];
    const destroy = (translator) => translator.destroy();
    for (const end of [destroy, (_, controller) => controller.abort('enough')]) {
      const controller = new AbortController();
      const translator = await Own.create({ ...pair, signal: controller.signal });
      const calls = [
        () => translator.translate(text),
        () => translator.measureInputUsage(text),
        () => translator.translateStreaming(text).pipeTo(new WritableStream()),
      ];
      const begun = calls.map(outcome);
      end(translator, controller);
      const outcomes = await Promise.all([...begun, ...calls.map(outcome)]);
      translator.destroy();
      ends.push(outcomes.map(({ name, thrown }) => name ?? thrown));
    }
    return ends;
  }, TEXT);
  assert.deepEqual(ends, [Array(6).fill('AbortError'), Array(6).fill('enough')]);
});

test('a damaged download is not kept, and the next call downloads again', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  const create = () => tab.evaluate(() => outcome(async () => `${await Own.create(pair)}`));
  const damages = {
    'is damaged': (response) => response.end(DAMAGED),
    'or it is not the one': (response) => response.end(MODEL.subarray(5)),
    'did not arrive whole': (response) => {
      response.setHeader('Content-Length', MODEL.length);
      response.write(MODEL.subarray(0, 1000), () => response.destroy());
    },
    'There is no model': (response) => response.writeHead(404).end(),
  };
  for (const [message, answer] of Object.entries(damages)) {
    host.answers.set('/en-nl.tflite', (response) => {
      response.setHeader('Cache-Control', 'max-age=3600');
      answer(response);
    });
    const { name, message: found } = await create();
    assert.equal(name, 'NetworkError');
    assert.match(found, new RegExp(message));
    assert.equal(await tab.evaluate(() => Own.availability(pair)), 'downloadable');
  }
  host.offers('/en-nl.tflite', MODEL);
  assert.equal(await create(), '[object Translator]');
  assert.equal(host.count('/en-nl.tflite'), 5);
});

test('what the browser keeps is checked, and replaced by what the manifest lists', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  await tab.evaluate((text) => translate(text), SOURCE);
  const name = await tab.evaluate(async () => {
    const [name] = await caches.keys();
    const cache = await caches.open(name);
    const request = (await cache.keys()).find(({ url }) => url.includes('sha256='));
    const bytes = new Uint8Array(await (await cache.match(request)).arrayBuffer());
    bytes[bytes.length >> 1] ^= 1;
    await cache.put(request, new Response(bytes));
    return name;
  });
  assert.equal(name, `keras-vanilla ${host.url}translators.json`);
  assert.equal(await tab.evaluate((text) => translate(text), SOURCE), TARGET);
  assert.equal(host.count('/en-nl.tflite'), 2);

  host.offers('/newer.tflite', MODEL);
  host.lists([host.entry('newer.tflite')]);
  const later = await host.tab();
  assert.equal(await later.evaluate((text) => translate(text), SOURCE), TARGET);
  const urls = await later.evaluate(async (name) => {
    const keys = await (await caches.open(name)).keys();
    return keys.map(({ url }) => url.replace(location.origin, '').split('?')[0]);
  }, name);
  assert.deepEqual(urls.toSorted(), ['/newer.tflite', '/translators.json']);
});

test('without space in the browser it keeps nothing, and translates', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  const seen = await tab.evaluate(async (text) => {
    Cache.prototype.put = async () => {
      throw new DOMException('No space.', 'QuotaExceededError');
    };
    return [await translate(text), await Own.availability(pair), await translate(text)];
  }, SOURCE);
  assert.deepEqual(seen, [TARGET, 'downloadable', TARGET]);
  assert.equal(host.count('/en-nl.tflite'), 2);
});

test('a manifest or a file that is of no use is an error with a sentence', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  const fails = async (call) => {
    const { name, message } = await tab.evaluate((call) => outcome(() => Own[call](pair)), call);
    return `${name}: ${message}`;
  };
  for (const [entries, why] of [
    [{}, 'is not a function'],
    [[host.entry('x', { size: 0 })], 'the size of x is 0'],
    [[host.entry('x', { sha256: 'abc' })], 'the SHA-256 of x is abc'],
    [[host.entry('x', { sourceLanguage: 'not a tag' })], ''],
  ]) {
    host.lists(entries);
    const found = await fails('create');
    assert.match(found, /^UnknownError: This is not a manifest of translators: http.*\(.+\)$/);
    assert.ok(found.includes(why), found);
  }
  host.answers.set('/translators.json', (response) => response.writeHead(500).end());
  assert.match(await fails('availability'), /^UnknownError: The manifest answered 500: http/);

  const text = 'not a translator';
  const sha256 = createHash('sha256').update(text).digest('hex');
  host.offers('/en-nl.tflite', text);
  host.lists([host.entry('en-nl.tflite', { size: text.length, sha256 })]);
  assert.match(await fails('create'), /^OperationError: /);
  host.offers('/en-nl.tflite', MODEL);
  host.lists([host.entry('en-nl.tflite')]);
  const other = await host.tab({ runtime: 'nowhere' });
  const { name, message } = await other.evaluate(() => outcome(() => Own.create(pair)));
  assert.match(`${name}: ${message}`, /^OperationError: LiteRT.js did not load from http/);
});

test('a text above the quota is refused', async () => {
  const host = await Host.open();
  const tab = await host.tab({ inputQuota: SOURCE.length });
  const seen = await tab.evaluate(async (text) => {
    const translator = await Own.create(pair);
    const long = `${text}!`;
    return {
      fits: await translator.translate(text),
      usage: await Promise.all(['', text, long].map((x) => translator.measureInputUsage(x))),
      quota: translator.inputQuota,
      error: await outcome(() => translator.translate(long)),
      stream: await outcome(() => translator.translateStreaming(long).getReader().read()),
      isNative: 'QuotaExceededError' in globalThis,
    };
  }, SOURCE);
  const quota = SOURCE.length;
  assert.equal(seen.fits, TARGET);
  assert.deepEqual([seen.usage, seen.quota], [[1, quota, quota + 1], quota]);
  for (const error of [seen.error, seen.stream]) {
    assert.equal(error.name, 'QuotaExceededError');
    assert.equal(error.type, seen.isNative ? 'QuotaExceededError' : 'DOMException');
    assert.deepEqual([error.requested, error.quota], [quota + 1, quota]);
  }
});

test('a page that is gone translates no more', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  const names = await tab.evaluate(async () => {
    const frame = document.createElement('iframe');
    frame.src = '/';
    await new Promise((done) => {
      frame.onload = done;
      document.body.append(frame);
    });
    const script = frame.contentDocument.createElement('script');
    script.type = 'module';
    script.textContent = `
      import { translatorOver } from '/translator/polyfill.js';
      const Own = translatorOver('translators.json');
      const translator = await Own.create(${JSON.stringify(pair)});
      parent.ofFrame({ Own, translator });`;
    const { Own, translator } = await new Promise((done) => {
      globalThis.ofFrame = done;
      frame.contentDocument.body.append(script);
    });
    frame.remove();
    const calls = [
      () => Own.availability(pair),
      () => Own.create(pair),
      () => translator.translate('one'),
      () => translator.measureInputUsage('one'),
      () => translator.translateStreaming('one'),
    ];
    // A promise of a page that is gone settles, but nothing may be awaited there.
    const nameOf = (call) =>
      new Promise((done) => {
        const failed = ({ name }) => done(name);
        try {
          call().then(done, failed);
        } catch (error) {
          failed(error);
        }
      });
    return Promise.all(calls.map(nameOf));
  });
  assert.deepEqual(names, Array(5).fill('InvalidStateError'));
});

test('it steps aside for the browser, unless the page prefers it, and works beside it', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  const seen = await tab.evaluate(async () => {
    const { install } = await import('/translator/polyfill.js');
    const native = class Translator {};
    const property = (name) => {
      const { enumerable, writable, configurable } =
        Object.getOwnPropertyDescriptor(globalThis, name);
      return [enumerable, writable, configurable];
    };
    globalThis.Translator = native;
    const aside = [undefined, {}, { prefer: 'native' }].map(
      (options) => install('translators.json', options) === native,
    );
    const own = install('translators.json', { prefer: 'own' });
    const replaced = own !== native && own === globalThis.Translator;
    delete globalThis.Translator;
    const alone = install('translators.json') === globalThis.Translator;
    return {
      aside,
      replaced,
      alone,
      available: await own.availability(pair),
      beside: await Own.availability(pair),
      properties: ['Translator', 'CreateMonitor'].map(property),
    };
  });
  assert.deepEqual(seen, {
    aside: [true, true, true],
    replaced: true,
    alone: true,
    available: 'downloadable',
    beside: 'downloadable',
    properties: Array(2).fill([false, true, true]),
  });
});

test('it works in a worker', async () => {
  const host = await Host.open();
  const program = `
    import { install } from '/translator/polyfill.js';
    delete globalThis.Translator;
    install('translators.json');
    onmessage = async ({ data }) => {
      const translator = await Translator.create(${JSON.stringify(PAIR)});
      postMessage(await translator.translate(data));
    };
    postMessage('ready');`;
  host.offers('/a-worker.js', program, TYPES.js);
  const tab = await host.tab();
  const text = await tab.evaluate(async (text) => {
    const worker = new Worker('/a-worker.js', { type: 'module' });
    globalThis.worker = worker; // Firefox may end one that is waiting and that nothing refers to
    const answer = () => new Promise((done) => (worker.onmessage = ({ data }) => done(data)));
    await answer();
    worker.postMessage(text);
    return answer();
  }, SOURCE);
  assert.equal(text, TARGET);
});

test('after the first visit it needs no network', async () => {
  const host = await Host.open();
  const [worker, registration] = setting.guide.offline;
  host.offers('/service-worker.js', worker, TYPES.js);
  host.offers('/app.js', '', TYPES.js);
  const tab = await openTab(host.url);
  await tab.evaluate(async (program) => {
    const { constructor: AsyncFunction } = async function () {};
    await new AsyncFunction(program)();
    await navigator.serviceWorker.ready;
  }, registration);
  const begin = { pair: PAIR, options: {} };
  await tab.evaluate(prepare, begin);
  assert.equal(await tab.evaluate((text) => translate(text), SOURCE), TARGET);
  const { url } = host;
  host.stop();
  await tab.goto(url);
  await tab.evaluate(prepare, begin);
  const seen = await tab.evaluate(async (text) => {
    const network = await fetch('/another').then((response) => response.type, () => 'no network');
    return [network, await Own.availability(pair), await translate(text)];
  }, SOURCE);
  assert.deepEqual(seen, ['no network', 'available', TARGET]);
});

test("the guide's first lines translate where the browser has a class of its own", async () => {
  const host = await Host.open();
  const model = readFileSync(setting.guide.model);
  host.offers('/en-fr.tflite', model);
  host.lists([host.entry('en-fr.tflite', { targetLanguage: 'fr' }, model)]);
  // As Chromium's class, which asks for a click and then may load a model for minutes.
  const native = `<script>globalThis.Translator = class Translator {
    static create() { return new Promise(() => {}); }
  };</script>`;
  host.offers('/', PAGE + native + setting.guide.html, 'text/html');
  const tab = await openTab(host.url);
  const shown = await tab.evaluate(async () => {
    while (!document.body.innerText) await new Promise((done) => setTimeout(done, 20));
    return document.body.innerText;
  });
  assert.equal(shown, setting.guide.text);
});

test('on plain http it keeps nothing, and translates', { skip: setting.firefox }, async () => {
  const host = await Host.open();
  const tab = await openTab(`http://insecure.test:${host.port}/`);
  await tab.evaluate(prepare, { pair: PAIR, options: {} });
  host.answers.set('/en-nl.tflite', (response) => response.end(MODEL.subarray(1)));
  assert.equal((await tab.evaluate(() => outcome(() => Own.create(pair)))).name, 'NetworkError');
  host.offers('/en-nl.tflite', MODEL);
  const seen = await tab.evaluate(
    async (text) => [isSecureContext, await translate(text), await Own.availability(pair)],
    SOURCE,
  );
  assert.deepEqual(seen, [false, TARGET, 'downloadable']);
});
