/**
 * The Translator API as its specification and Web IDL describe it, in a browser: the class
 * itself, what it takes, and where it works. Where the browser has the class, what is expected
 * of ours is expected of that too.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Host, PAIR, prepare, setting, openTab, TYPES } from './host.mjs';

const [[SOURCE, TARGET]] = setting.texts;
const ILLEGAL = 'TypeError: Illegal invocation';

/** In a page: what Web IDL determines of an interface, by the names of its members. */
function shape(Interface) {
  const described = (owner) => {
    const all = Object.entries(Object.getOwnPropertyDescriptors(owner));
    const names = ['length', 'name', 'prototype', 'constructor', 'arguments', 'caller'];
    return all
      .filter(([name]) => !names.includes(name))
      .map(([name, { get, set, value, enumerable, configurable, writable }]) => [
        ...[name, enumerable, configurable],
        ...(get ? [get.name, get.length, set?.name ?? null] : [value.name, value.length, writable]),
      ])
      .toSorted(([a], [b]) => (a < b ? -1 : 1));
  };
  const { prototype } = Interface;
  return {
    name: [Interface.name, Interface.length, String(Object.getPrototypeOf(Interface).name)],
    prototype: Object.getOwnPropertyDescriptor(Interface, 'prototype').writable,
    parent: Object.getPrototypeOf(prototype).constructor.name,
    constructor: Object.getOwnPropertyDescriptor(prototype, 'constructor').enumerable,
    tag: Object.values(Object.getOwnPropertyDescriptor(prototype, Symbol.toStringTag)),
    text: Object.prototype.toString.call(prototype),
    statics: described(Interface),
    members: described(prototype),
  };
}

const attribute = (name) => [name, true, true, `get ${name}`, 0, null];
const operation = (name, length) => [name, true, true, name, length, true];
const INTERFACES = {
  Translator: {
    name: ['Translator', 0, ''],
    prototype: false,
    parent: 'Object',
    constructor: false,
    tag: ['Translator', false, false, true],
    text: '[object Translator]',
    statics: [operation('availability', 1), operation('create', 1)],
    members: [
      operation('destroy', 0),
      attribute('inputQuota'),
      operation('measureInputUsage', 1),
      attribute('sourceLanguage'),
      attribute('targetLanguage'),
      operation('translate', 1),
      operation('translateStreaming', 1),
    ],
  },
  CreateMonitor: {
    name: ['CreateMonitor', 0, 'EventTarget'],
    prototype: false,
    parent: 'EventTarget',
    constructor: false,
    tag: ['CreateMonitor', false, false, true],
    text: '[object CreateMonitor]',
    statics: [],
    members: [
      [...attribute('ondownloadprogress').slice(0, -1), 'set ondownloadprogress'],
    ],
  },
};

for (const [name, expected] of Object.entries(INTERFACES)) {
  test(`${name} has the shape that Web IDL gives an interface`, async () => {
    const host = await Host.open();
    const tab = await host.tab();
    const [native, own] = await tab.evaluate(
      async ([name, shape]) => {
        const shapeOf = new Function(`return ${shape}`)();
        const native = globalThis[name] && shapeOf(globalThis[name]);
        const { install } = await import('/translator/polyfill.js');
        install('translators.json', { prefer: 'own' });
        return [native, shapeOf(globalThis[name])];
      },
      [name, String(shape)],
    );
    assert.deepEqual(own, expected);
    if (native) assert.deepEqual(native, expected);
  });
}

test('members of another object, and constructors, are refused', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  const seen = await tab.evaluate(async () => {
    let Monitor;
    (await Own.create({ ...pair, monitor: (m) => (Monitor = m.constructor) })).destroy();
    const of = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name);
    const attributes = ['sourceLanguage', 'targetLanguage', 'inputQuota'];
    const errors = { promises: [], others: [] };
    for (const that of [undefined, null, 7, {}, Own, Own.prototype]) {
      for (const name of ['translate', 'measureInputUsage']) {
        const promise = Own.prototype[name].call(that, 'one'); // does not throw
        errors.promises.push(await promise.catch(String));
      }
      const calls = [
        () => Own.prototype.translateStreaming.call(that, 'one'),
        () => Own.prototype.destroy.call(that),
        ...attributes.map((name) => () => of(Own.prototype, name).get.call(that)),
      ];
      for (const call of calls) errors.others.push((await outcome(async () => call())).name);
      const handler = of(Monitor.prototype, 'ondownloadprogress');
      errors.others.push((await outcome(async () => handler.get.call(that))).name);
    }
    for (const call of [() => new Own(), () => Own(), () => new Monitor(), () => Monitor()]) {
      errors.others.push((await outcome(async () => call())).name);
    }
    return errors;
  });
  assert.deepEqual(new Set(seen.promises), new Set([ILLEGAL]));
  assert.deepEqual(new Set(seen.others), new Set(['TypeError']));
});

test('a translator and its monitor are not cloned', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  const names = await tab.evaluate(async () => {
    let monitor;
    const translator = await Own.create({ ...pair, monitor: (m) => (monitor = m) });
    const { port1 } = new MessageChannel();
    const calls = [translator, { translator }, monitor].flatMap((value) => [
      () => structuredClone(value),
      () => port1.postMessage(value),
    ]);
    const outcomes = await Promise.all(calls.map((call) => outcome(async () => call())));
    return [Object.keys(translator).length, ...outcomes.map((each) => each?.name)];
  });
  assert.deepEqual(names, [0, ...Array(6).fill('DataCloneError')]);
});

test('a handler is a function or nothing, and comes beside listeners', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  const seen = await tab.evaluate(async () => {
    const log = [];
    const monitor = (m) => {
      m.ondownloadprogress = 7;
      log.push(m.ondownloadprogress);
      m.ondownloadprogress = {};
      log.push(typeof m.ondownloadprogress);
      m.addEventListener('downloadprogress', () => log.push('listener'), { once: true });
      m.ondownloadprogress = function (event) {
        if (event.loaded === 0) log.push(this === m && event.target === m);
      };
    };
    const created = Own.create({ ...pair, monitor });
    log.push('called at once');
    (await created).destroy();
    return log;
  });
  assert.deepEqual(seen.toSorted(), [null, 'called at once', 'listener', 'object', true].toSorted());
  assert.equal(seen[2], 'called at once');
});

test('inputs become strings, whatever they are, and streams give the same text', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  const seen = await tab.evaluate(async (text) => {
    const translator = await Own.create(pair);
    const inputs = [7, null, undefined, true, { toString: () => text }, [text]];
    const strings = await Promise.all(inputs.map((input) => translator.translate(input)));
    const expected = await Promise.all(inputs.map((input) => translator.translate(`${input}`)));
    const failing = { toString: () => { throw new RangeError('of a text'); } };
    const refused = [Symbol('a'), failing].flatMap((input) => [
      () => translator.translate(input),
      () => translator.measureInputUsage(input),
      async () => translator.translateStreaming(input),
    ]);
    const odd = ['\ud800', 'a\0b', '\u202eabc', '\r\n\r\n', `${text}\r\n${text}`, '🙂'.repeat(99), 'x'.repeat(999)];
    const same = [];
    for (const input of odd) {
      let streamed = '';
      for await (const chunk of translator.translateStreaming(input)) streamed += chunk;
      same.push(streamed === (await translator.translate(input)));
    }
    const names = (await Promise.all(refused.map(outcome))).map(({ name }) => name);
    return { strings, expected, names, same };
  }, SOURCE);
  assert.deepEqual(seen.strings, seen.expected);
  assert.equal(seen.strings[4], TARGET);
  assert.deepEqual(seen.names, [...Array(3).fill('TypeError'), ...Array(3).fill('RangeError')]);
  assert.deepEqual(seen.same, Array(7).fill(true));
});

test('translators are independent of each other', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  const seen = await tab.evaluate(async (text) => {
    const [one, two] = await Promise.all([Own.create(pair), Own.create(pair)]);
    const many = Promise.all(Array.from({ length: 9 }, () => two.translate(text)));
    one.destroy();
    one.destroy();
    return [one === two, (await outcome(() => one.translate(text))).name, new Set(await many).size];
  }, SOURCE);
  assert.deepEqual(seen, [false, 'AbortError', 1]);
});

test('a remembered text lets the page paint, and an abort ends it', async () => {
  const host = await Host.open();
  const tab = await host.tab();
  const seen = await tab.evaluate(async () => {
    const translator = await Own.create(pair);
    const long = 'Two houses. '.repeat(5000);
    const frames = { count: 0 };
    const count = () => {
      frames.count += 1;
      requestAnimationFrame(count);
    };
    count();
    let chunks = 0;
    for await (const chunk of translator.translateStreaming(long)) chunks += chunk ? 1 : 0;
    const signal = AbortSignal.timeout(5);
    return [frames.count > 2, chunks, (await outcome(() => translator.translate(long, { signal }))).name];
  });
  assert.deepEqual(seen, [true, 5000, 'TimeoutError']);
});

test('with `userActivation` a download needs a click, and what is kept does not', async () => {
  const host = await Host.open();
  const tab = await host.tab({ userActivation: true });
  const create = (isActive) =>
    tab.evaluate(async (isActive) => {
      Object.defineProperty(navigator, 'userActivation', { value: { isActive }, configurable: true });
      return outcome(async () => `${await Own.create(pair)}`);
    }, isActive);
  assert.equal((await create(false)).name, 'NotAllowedError');
  assert.equal(host.count('/en-nl.tflite'), 0);
  const same = { sourceLanguage: 'de', targetLanguage: 'de' };
  assert.equal(await tab.evaluate(async (same) => `${await Own.create(same)}`, same), '[object Translator]');
  assert.equal(await create(true), '[object Translator]');
  assert.equal(await create(false), '[object Translator]');
});

const POLICIES = {
  'of the guide': "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'",
  'of an extension': "script-src 'self' 'wasm-unsafe-eval'; object-src 'self'",
};

for (const [name, policy] of Object.entries(POLICIES)) {
  test(`it works under the Content-Security-Policy ${name}`, async () => {
    const host = await Host.open();
    host.policy = policy;
    const tab = await host.tab();
    const seen = await tab.evaluate(async (text) => {
      const violations = [];
      document.addEventListener('securitypolicyviolation', (event) => violations.push(event.blockedURI));
      const blob = URL.createObjectURL(new Blob(['']));
      const isStrict = await import(blob).then(() => false, () => true);
      const translation = await translate(text);
      return [isStrict, translation, violations.filter((uri) => uri !== 'blob')];
    }, SOURCE);
    assert.deepEqual(seen, [true, TARGET, []]);
  });
}

test('in a service worker, which can start no thread, it says so', async () => {
  const host = await Host.open();
  const program = `
    import { translatorOver } from '/translator/polyfill.js';
    import { loadTranslator } from '/translator/translate.js';
    const Own = translatorOver('/translators.json');
    const pair = ${JSON.stringify(PAIR)};
    onmessage = async ({ source }) => {
      const errors = [Own.create(pair), loadTranslator('/en-nl.tflite')].map((promise) =>
        promise.catch(({ name, code, message }) => [name, code, message]));
      source.postMessage([await Own.availability(pair), ...(await Promise.all(errors))]);
    };`;
  host.offers('/a-service-worker.js', program, TYPES.js);
  const tab = await openTab(host.url);
  const seen = await tab.evaluate(async () => {
    const { serviceWorker } = navigator;
    await serviceWorker.register('/a-service-worker.js', { type: 'module' });
    const { active } = await serviceWorker.ready;
    const answer = new Promise((done) => (serviceWorker.onmessage = ({ data }) => done(data)));
    serviceWorker.startMessages();
    active.postMessage('begin');
    return answer;
  });
  const [availability, [name, , message], [, code, sentence]] = seen;
  assert.deepEqual([availability, name, code], ['unavailable', 'NotSupportedError', 'runtime']);
  assert.equal(message, sentence);
  assert.match(message, /needs a page or a dedicated worker/);
  assert.equal(host.count('/en-nl.tflite'), 0);
});
