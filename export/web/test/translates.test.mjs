import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEVICES, open, photograph, setting, settled, type } from './setting.mjs';

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
    const said = await translator.translate(source).catch(({ code }) => ({ text: code }));
    found.push(said.text);
  }
  translator.close();
  return found;
}

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

  test(`${device}: a text that is too long is said to be`, async () => {
    const page = await open(urls.echo, device);
    const long = 'é'.repeat(limits.bytes / 2 + 1);
    await type(page, long);
    const bytes = String(Buffer.byteLength(long));
    assert.match(await page.innerText('#problem'), new RegExp(`${bytes}.* ${limits.bytes}`));
    await type(page, `Hund. ${'X y '.repeat(limits.tokens / 2)}`);
    assert.match(
      await page.innerText('#problem'),
      new RegExp(`underlined .* more than the ${limits.tokens} tokens`),
    );
    assert.match(await page.innerText('#translation'), /^Hund\. X y/);
    await photograph(page, `${device}-too-long`);
    await type(page, 'Hund.');
    assert.equal(await page.isVisible('#problem'), false);
  });
}

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
  await page.waitForFunction(() => !document.body.classList.contains('stale'));
  assert.equal(await page.innerText('#translation'), expected);
  assert.deepEqual(page.errors, []);
});

test('the translation is copied', async () => {
  const page = await open(urls.echo);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await type(page, 'Ein Hund. Grüße!');
  await page.click('#copy');
  await page.waitForFunction(
    () => document.querySelector('#copy').innerText === 'Copied',
  );
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, 'Ein Hund. Grüße!');
});

test('the page says what the model says of itself', async () => {
  const page = await open(urls.echo);
  await page.click('summary');
  const said = await page.innerText('body');
  for (const fact of setting.facts) assert.ok(said.includes(fact), fact);
});
