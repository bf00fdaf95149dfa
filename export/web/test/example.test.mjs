/** The example of Vite and React, built and as its development server has it. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blank, photograph, setting } from './setting.mjs';

const { urls, texts, short } = setting;

for (const [name, url] of Object.entries(urls)) {
  test(`${name}: it translates what is typed, sentence by sentence`, async () => {
    const page = await blank();
    await page.goto(url);
    for (const [source, text] of texts) {
      await page.fill('textarea', source);
      await page.waitForFunction(
        (text) => document.querySelector('output').innerText === text,
        text,
      );
    }
    assert.equal(await page.locator('[role=alert]').count(), 0);
    assert.equal(page.workers().length, 1);
    assert.deepEqual(page.errors, []);
    await photograph(page, `example-${name}`);
  });

  test(`${name}: the Translator API translates, in the page and in a worker`, async () => {
    const page = await blank();
    await page.goto(url);
    const [source, text] = texts[0];
    assert.equal(await page.evaluate((source) => translate(source), source), text);
    assert.equal(await page.evaluate((source) => translateInWorker(source), source), text);
    const names = await page.evaluate(() =>
      [globalThis.Translator, CreateMonitor].flatMap(({ name, prototype }) => [name, `${prototype}`]),
    );
    const [one, two] = ['Translator', 'CreateMonitor']; // whatever the bundler calls them
    assert.deepEqual(names, [one, `[object ${one}]`, two, `[object ${two}]`]);
    assert.deepEqual(page.errors, []);
  });
}

test('a translation that is cut off is said to be', async () => {
  const page = await blank();
  await page.goto(urls.built);
  await page.fill('textarea', short.whole);
  await page.waitForSelector('output:not(:empty)');
  assert.equal(await page.getByText('cut off').count(), 0);
  await page.fill('textarea', short.cut);
  await page.getByText('cut off').waitFor();
});
