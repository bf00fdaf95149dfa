import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEVICES, open, photograph, setting, settled, translated, type } from './setting.mjs';

const { urls, texts, limits } = setting;

for (const name of Object.keys(texts)) {
  test(`${name}: the same text as from Python`, async () => {
    const page = await open(urls[name]);
    const sources = texts[name].map(([source]) => source);
    const found = await page.evaluate(translateAll, sources);
    assert.deepEqual(found, texts[name].map(([, text]) => text));
    assert.ok(found.length >= 100);
  });
}

/** Runs in the page, as a module of somebody else's would. */
async function translateAll(sources) {
  const { loadTranslator } = await import('/translate.js');
  const translator = await loadTranslator('/translator.tflite');
  const found = [];
  for (const source of sources) {
    const result = translator.translateSentence(source);
    found.push(await result.then(({ text }) => text, ({ code }) => code));
  }
  translator.close();
  return found;
}

test('what is asked of a closed translator is refused, and what it was doing', async () => {
  const page = await open(urls.echo);
  const codes = await page.evaluate(async () => {
    const { loadTranslator } = await import('/translate.js');
    const translator = await loadTranslator('/translator.tflite');
    const pending = ['Ein Hund.', 'Hund.'].map((text) => translator.translate(text));
    translator.close();
    const results = await Promise.allSettled([...pending, translator.translate('Hund.')]);
    return results.map(({ reason }) => reason.code);
  });
  assert.deepEqual(codes, ['closed', 'closed', 'closed']);
});

test('loading and translating can be aborted, and a later call replaces others', async () => {
  const page = await open(urls.echo);
  const results = await page.evaluate(async () => {
    const { loadTranslator } = await import('/translate.js');
    const aborted = loadTranslator('/translator.tflite', { signal: AbortSignal.abort('no') });
    const translator = await loadTranslator('/translator.tflite');
    const controller = new AbortController();
    const typed = ['Ein', 'Ein Hund', 'Ein Hund.'].map((text) =>
      translator.translate(text, { replaces: 'typed', signal: controller.signal }),
    );
    const results = await Promise.allSettled([aborted, ...typed]);
    const last = translator.translate('Hund. Hund.', { signal: controller.signal });
    controller.abort('enough');
    results.push(...(await Promise.allSettled([last])));
    return results.map(({ reason, value }) => reason?.code ?? reason ?? value.text);
  });
  assert.deepEqual(results, ['no', 'replaced', 'replaced', 'Ein Hund.', 'enough']);
});

for (const device of Object.keys(DEVICES)) {
  test(`${device}: it translates while one types`, async () => {
    const page = await open(urls.translator, device);
    await photograph(page, `${device}-ready`);
    const [source, text] = texts.translator[0];
    await page.locator('#source').pressSequentially(source);
    await page.waitForFunction((text) => document.querySelector('#translation').innerText === text,
      text,
    );
    assert.match(await page.innerText('#time'), /^\d+ ms$/);
    assert.equal(page.workers().length, 1); // the page itself stays free
    await photograph(page, `${device}-translated`);

    assert.equal(await type(page, ''), '');
    assert.equal(await page.isVisible('#copy'), false);
    assert.deepEqual(page.errors, []);
  });

  test(`${device}: nothing is wider than the screen`, async () => {
    const page = await open(urls.translator, device);
    await type(page, 'x'.repeat(80));
    await page.click('summary');
    const wide = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    assert.equal(wide, 0);
    await photograph(page, `${device}-about`);
  });

  test(`${device}: a sentence that is too long is translated in parts`, async () => {
    const page = await open(urls.echo, device);
    const clause = 'Ein Hund rennt Hund rennt, ';
    const long = clause.repeat(limits.bytes / clause.length + 2).trim();
    assert.equal(await type(page, long), long);
    const sentence = `Too long: a sentence has more than ${limits.bytes} bytes or ${limits.tokens} tokens`;
    assert.ok((await page.innerText('#too-long')).startsWith(sentence));
    assert.match(await page.innerText('#doubts'), /^Doubtful: /);
    await type(page, `Hund. ${'Hund '.repeat(limits.tokens)}\n${'é'.repeat(limits.bytes)}`);
    assert.match(await page.innerText('#too-long'), /^Too long: 2 sentences have/);
    assert.match(await page.innerText('#doubts'), /^Doubtful \(3 of 3 sentences\): /);
    assert.match(await page.innerText('#translation'), /^Hund\. Hund Hund.*\né{30}/);
    assert.equal(await page.isVisible('#problem'), false);
    await photograph(page, `${device}-too-long`);
    await type(page, 'Hund.');
    assert.equal(await page.innerText('#too-long'), '');
  });
}

for (const device of Object.keys(DEVICES)) {
  test(`${device}: a translation that is cut off is shown to be`, async () => {
    const page = await open(urls.short, device);
    const [source, text] = texts.short.find(([, text]) => text.split(' ').length === 8);
    assert.equal(await type(page, source), text);
    const mark = await page.evaluate(() => {
      const style = getComputedStyle(document.querySelector('#translation .cut-off'), '::after');
      return style.content;
    });
    assert.equal(mark, '"…"');
    assert.match(await page.innerText('#problem'), /^Cut off at “…”: .* at most 8 tokens/);
    await photograph(page, `${device}-cut-off`);
    await type(page, `${source}\n${source}`);
    assert.match(await page.innerText('#problem'), /^Cut off at “…”: 2 translations/);
    await type(page, 'two');
    assert.equal(await page.isVisible('#problem'), false);
  });
}

test('a long text appears as it is translated', async () => {
  const page = await open(urls.echo);
  await page.evaluate(() => {
    const output = document.querySelector('#translation');
    window.lengths = [];
    new MutationObserver(() => {
      const busy = output.ariaBusy === 'true' && document.body.classList.contains('stale');
      if (busy) window.lengths.push(output.textContent.length);
    }).observe(output, { childList: true });
  });
  const lines = Array.from({ length: 40 }, (_, i) => `Ein Hund rennt ${i}.`);
  assert.equal(await type(page, lines.join('\n')), lines.join('\n'));
  const lengths = await page.evaluate(() => window.lengths);
  assert.ok(lengths.length > 20, lengths);
  assert.deepEqual(lengths, lengths.toSorted((a, b) => a - b));
  assert.equal(await page.getAttribute('#translation', 'aria-busy'), 'false');
});

test('what has changed is translated, and the rest stays', async () => {
  const page = await open(urls.echo);
  const text = 'Ein Hund. Ein Hund rennt. Hund.';
  for (const change of [text, text.replace('rennt', 'rennt 7'), text.slice(0, 9), text]) {
    assert.equal(await type(page, change), change);
  }
});

test('sentences are translated one by one, and lines stay lines', async () => {
  const page = await open(urls.echo);
  const text = await type(page, 'Ein Hund.  Grüße, 猫!\n\nEin Hund rennt 37.');
  assert.equal(text, 'Ein Hund.  Grüße, 猫!\n\nEin Hund rennt 37.');
  assert.match(await page.innerText('#time'), /^3 sentences, \d+ ms each$/);
});

test('what is typed while it loads is translated', async () => {
  const page = await open(urls.echo);
  await page.reload({ waitUntil: 'commit' });
  await page.fill('#source', 'Ein Hund.');
  await settled(page);
  await page.waitForFunction(
    () => document.querySelector('#translation').innerText === 'Ein Hund.',
  );
});

test('an address may bring a text, which is translated at once', async () => {
  const text = 'Ein Hund & 1 + 1 = 2. Grüße, 猫!';
  const expected = await type(await open(urls.echo), text);
  assert.match(expected, /^Ein Hund/);
  const page = await open(`${urls.echo}#text=${encodeURIComponent(text)}`);
  assert.equal(await page.inputValue('#source'), text);
  await translated(page);
  assert.equal(await page.innerText('#translation'), expected);
  assert.deepEqual(page.errors, []);
});

test('a plus in an address is a plus, and what is no code is itself', async () => {
  const page = await open(`${urls.echo}#text=1+1`);
  assert.equal(await page.inputValue('#source'), '1+1');
  for (const [hash, text] of [['#text=100%', '100%'], ['#a=b&text=2%2B2&c', '2+2']]) {
    await page.evaluate((hash) => (location.hash = hash), hash); // on the open page
    await page.waitForFunction(
      (text) => document.querySelector('#source').value === text,
      text,
    );
  }
  await translated(page);
  assert.deepEqual(page.errors, []);
});

test('the translation and a link to it are copied, which is announced', async () => {
  const page = await open(urls.echo);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  assert.equal(await page.isVisible('#copy'), false);
  await type(page, 'Ein Hund. 1 + 1 & Grüße!');
  await page.click('#copy');
  await page.waitForSelector('[role=status]:text-is("Copied")');
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  assert.equal(await copied(), await page.innerText('#translation'));
  await page.click('#link');
  await page.waitForSelector('[role=status]:text-is("Link copied")');
  assert.equal(await copied(), page.url());
  const other = await open(await copied());
  assert.equal(await other.inputValue('#source'), 'Ein Hund. 1 + 1 & Grüße!');
});

test('a browser that does not let the page copy is said to', async () => {
  const page = await open(urls.echo);
  await type(page, 'Ein Hund.');
  for (const clipboard of ['undefined', '{ writeText: () => Promise.reject(Error()) }']) {
    await page.evaluate(`Object.defineProperty(navigator, 'clipboard',
      { value: ${clipboard}, configurable: true })`);
    await page.click('#copy');
    await page.waitForSelector('[role=status]:text("did not allow it: copy the selected")');
    assert.equal(await page.evaluate(() => String(getSelection())), 'Ein Hund.');
    await page.click('#link');
    await page.waitForSelector('[role=status]:text("did not allow it: the link is")');
    assert.match(page.url(), /#text=Ein%20Hund\.$/);
  }
  assert.deepEqual(page.errors, []);
});

test('the text is cleared, and the next one can be typed', async () => {
  const page = await open(urls.echo);
  await type(page, 'Ein Hund.');
  await page.click('#clear');
  await translated(page);
  assert.equal(await page.innerText('#translation'), '');
  assert.equal(await page.isVisible('#clear'), false);
  await page.keyboard.type('Hund.');
  assert.equal(await page.inputValue('#source'), 'Hund.');
});

test('the page says what the model says of itself', async () => {
  const page = await open(urls.echo);
  await page.click('summary');
  const said = await page.innerText('body');
  for (const fact of setting.facts) assert.ok(said.includes(fact), fact);
});
