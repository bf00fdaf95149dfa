/** How both pages open: what they say while the model loads, and with what they begin. */

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { blank, DEVICES, open, photograph, setting, settled } from './setting.mjs';

const { site, echo } = setting.urls;
const [[EXAMPLE, TRANSLATION], [OTHER, ITS_TRANSLATION]] = setting.examples;
const PAGES = { translator: '', explainer: 'inside/index.html' };
const NO_TOUR = '#beams=4'; // a choice in the address: no tour begins
const TITLE = 'Reversal, English to Dutch';

/** A server of the site that sends half of a file, and the rest when it is told to. */
class SlowSite {
  constructor(file, { encoding, statesLength = true } = {}) {
    Object.assign(this, { file, encoding, statesLength });
    this.rest = new Promise((done) => (this.sendRest = done));
    this.server = createServer((request, response) => this.answer(request, response));
    after(() => this.server.close());
  }

  async start() {
    await new Promise((done) => this.server.listen(0, '127.0.0.1', done));
    return `http://127.0.0.1:${this.server.address().port}/`;
  }

  async answer({ url }, response) {
    const file = await fetch(new URL(url, site));
    let body = Buffer.from(await file.arrayBuffer());
    response.statusCode = file.status;
    response.setHeader('Content-Type', file.headers.get('Content-Type'));
    if (!url.endsWith(this.file)) return response.end(body);
    if (this.encoding) {
      body = gzipSync(body);
      response.setHeader('Content-Encoding', this.encoding);
    }
    if (this.statesLength) response.setHeader('Content-Length', body.length);
    const half = Math.floor(body.length / 2);
    response.write(body.subarray(0, half));
    await this.rest;
    response.end(body.subarray(half));
  }
}

const pressed = (page) => page.locator('#examples [aria-pressed=true]').allInnerTexts();
const isTranslated = (page, text) =>
  page.waitForFunction((text) => document.querySelector('#translation').innerText === text, text);

for (const [name, path] of Object.entries(PAGES)) {
  test(`${name}: it opens with an example, and says what it translates`, async () => {
    const page = await open(`${site}${path}${NO_TOUR}`);
    await isTranslated(page, TRANSLATION);
    assert.equal(await page.inputValue('#source'), EXAMPLE);
    assert.equal(await page.innerText('h1'), TITLE);
    assert.ok((await page.title()).endsWith(TITLE));
    assert.deepEqual(await pressed(page), [EXAMPLE]);
    assert.deepEqual(page.errors, []);
  });

  test(`${name}: another example is one click away`, async () => {
    const page = await open(`${site}${path}${NO_TOUR}`);
    const examples = page.getByRole('group', { name: 'Examples' }).getByRole('button');
    assert.deepEqual(await examples.allInnerTexts(), setting.examples.map(([text]) => text));
    await page.getByRole('button', { name: OTHER, exact: true }).click();
    await isTranslated(page, ITS_TRANSLATION);
    assert.equal(await page.inputValue('#source'), OTHER);
    assert.deepEqual(await pressed(page), [OTHER]);
    await page.fill('#source', `${EXAMPLE} ${OTHER}`);
    await page.waitForFunction(() => !document.querySelector('#examples [aria-pressed=true]'));
  });

  test(`${name}: a text in the address comes before the examples, an empty one too`, async () => {
    const page = await open(`${site}${path}#text=${encodeURIComponent(OTHER)}`);
    await isTranslated(page, ITS_TRANSLATION);
    const empty = await open(`${site}${path}#text=`);
    assert.equal(await empty.inputValue('#source'), '');
    assert.ok(await empty.isVisible('#examples'));
  });

  test(`${name}: it says how much of the model has arrived, and what is typed is kept`, async () => {
    const file = path ? 'inside.tflite' : 'translator.tflite';
    const slow = new SlowSite(file);
    const page = await blank(DEVICES.phone);
    await page.goto(`${await slow.start()}${path}${NO_TOUR}`);
    await page.waitForFunction(() => document.querySelector('#arrived').value > 0.3);
    const [, received, total] = /^Loading the model: (\S+) of (\S+) MB$/.exec(await page.innerText('#loading'));
    const size = (await (await fetch(`${site}${file}`)).arrayBuffer()).byteLength;
    assert.equal(total, (size / 1e6).toFixed(1));
    assert.ok(Number(received) <= Number(total));
    assert.ok(await page.getByRole('progressbar', { name: 'Loading the model' }).isVisible());
    const buttons = await page.getByRole('button').allInnerTexts();
    const working = ['Take the tour', 'piece']; // the others could do nothing yet
    assert.deepEqual(buttons.filter((button) => !working.includes(button)), []);
    assert.equal(await page.locator('input:visible').count(), 0);
    await photograph(page, `phone-${name}-loading`);
    await page.fill('#source', OTHER);
    slow.sendRest();
    await settled(page);
    await isTranslated(page, ITS_TRANSLATION);
    assert.equal(await page.isVisible('#progress'), false);
    assert.deepEqual(page.errors, []);
  });
}

for (const options of [{ statesLength: false }, { encoding: 'gzip' }]) {
  test(`a size that is not known is not stated: ${JSON.stringify(options)}`, async () => {
    const slow = new SlowSite('translator.tflite', options);
    const page = await blank();
    await page.goto(await slow.start());
    await page.waitForFunction(() => /^Loading the model: [\d.]+ MB$/.test(document.querySelector('#loading').textContent));
    assert.equal(await page.getAttribute('#arrived', 'value'), null);
    slow.sendRest();
    await settled(page);
    assert.equal(await page.isVisible('#failure'), false);
  });
}

test('it says how much of the runtime has arrived', async () => {
  const slow = new SlowSite('.wasm');
  const page = await blank();
  await page.goto(await slow.start());
  await page.waitForFunction(() => document.querySelector('#loading').textContent.startsWith('Loading the runtime'));
  await page.waitForFunction(() => document.querySelector('#arrived').value > 0.3);
  assert.match(await page.innerText('#loading'), /^Loading the runtime: [45]\.\d of [89]\.\d MB$/);
  slow.sendRest();
  await settled(page);
  await isTranslated(page, TRANSLATION);
});

test('a model without examples begins with an empty text', async () => {
  const page = await open(echo);
  assert.equal(await page.innerText('h1'), 'An echo, German to Brazilian Portuguese');
  assert.equal(await page.inputValue('#source'), '');
  assert.equal(await page.isVisible('#examples'), false);
});

test('without a sentence the explainer says what it explains, and shows nothing else', async () => {
  const page = await open(`${site}inside/index.html#text=`);
  assert.match(await page.innerText('#intro'), /This page shows how/);
  for (const id of ['target', 'next', 'tree', 'encoder', 'play']) {
    assert.equal(await page.isVisible(`#${id}`), false, id);
  }
  await page.getByRole('button', { name: EXAMPLE, exact: true }).click();
  await isTranslated(page, TRANSLATION);
  assert.ok(await page.isVisible('#play'));
});

for (const device of Object.keys(DEVICES)) {
  test(`${device}: the examples make no page wider than the screen`, async () => {
    for (const [name, path] of Object.entries(PAGES)) {
      const page = await open(`${site}${path}${NO_TOUR}`, device);
      await isTranslated(page, TRANSLATION);
      const outside = await page.evaluate(() =>
        ['#translation', '#source', '#link'].filter((id) => {
          return document.querySelector(id).getBoundingClientRect().right > innerWidth;
        }),
      );
      assert.deepEqual(outside, []);
      await photograph(page, `${device}-${name}-example`);
    }
  });
}
