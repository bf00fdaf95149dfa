/** The guided tour, as somebody takes it who has never been here. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blank, DEVICES, open, photograph, setting } from './setting.mjs';

const URL_OF_PAGE = `${setting.urls.site}inside/index.html`;
const STEPS = 7;

const isAtStep = (page, step) =>
  page.waitForFunction((step) => document.querySelector('#tour-step').textContent.startsWith(`Step ${step} `), step);
const isShown = (page) => page.isVisible('#tour');

for (const device of Object.keys(DEVICES)) {
  test(`${device}: it leads through seven steps to the reader's own sentence`, async () => {
    const page = await open(URL_OF_PAGE, device);
    const titles = new Set();
    for (let step = 1; step <= STEPS; step++) {
      await isAtStep(page, step);
      assert.equal(await page.isVisible('main'), false);
      titles.add(await page.innerText('#tour-title'));
      assert.ok((await page.innerText('#tour-drawing')).length > 0);
      const wide = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      assert.equal(wide, 0, `step ${step}`);
      await photograph(page, `${device}-tour-${step}`);
      await page.click('#tour-next');
    }
    assert.equal(titles.size, STEPS);
    assert.ok(await page.isVisible('main'));
    assert.equal(await page.evaluate(() => document.activeElement.id), 'source');
    await page.waitForFunction(() => document.querySelector('#hypotheses li'));
    assert.deepEqual(page.errors, []);
    await page.goto('about:blank');
    await page.goto(URL_OF_PAGE); // a second visit
    await page.waitForSelector('#take-tour:not([hidden])');
    assert.equal(await isShown(page), false);
  });
}

test('it does not wait for the model', async () => {
  const page = await blank();
  await page.route('**/*.tflite', () => {}); // which never arrives
  await page.goto(URL_OF_PAGE);
  await isAtStep(page, 1);
  assert.ok((await page.innerText('#tour-drawing')).includes('⟨end⟩'));
  await page.click('#tour-skip');
  assert.equal(await isShown(page), false);
});

test('the weights of a head sum to a hundred percent, and its numbers are real', async () => {
  const page = await open(`${URL_OF_PAGE}#tour=3`);
  await isAtStep(page, 3);
  const rows = await page.locator('#tour-drawing tbody tr').allInnerTexts();
  const shares = rows.map((row) => Number(/([\d.]+) %/.exec(row)[1]));
  const sum = shares.reduce((total, share) => total + share, 0);
  assert.ok(Math.abs(sum - 100) < 0.6 * shares.length, `${sum}`);
  assert.match(await page.innerText('#tour-text'), /\(−?\d+\.\d\d · −?\d+\.\d\d \+ .+ = −?\d+\.\d\d/);
});

test('the browser leads back, a link leads to a step, and the tour can be taken again', async () => {
  const page = await open(`${URL_OF_PAGE}#tour=2`);
  await page.click('#tour-next');
  await isAtStep(page, 3);
  await page.goBack();
  await isAtStep(page, 2);
  await page.click('#tour-back');
  await isAtStep(page, 1);
  await page.click('#tour-skip');
  await page.waitForFunction(() => document.querySelector('#hypotheses li'));
  await page.click('#take-tour');
  await isAtStep(page, 1);
});

test('a link to a sentence does not begin the tour', async () => {
  const page = await open(`${URL_OF_PAGE}#text=two%20three`);
  await page.waitForFunction(() => document.querySelector('#hypotheses li'));
  assert.equal(await isShown(page), false);
});

test('a word is explained with the keyboard alone', async () => {
  const page = await open(`${URL_OF_PAGE}#tour=3`);
  await isAtStep(page, 3);
  for (const name of ['layer', 'encoder', 'heads']) {
    await page.locator('#tour .word', { hasText: name }).focus();
    await page.keyboard.press('Enter');
    const shown = page.locator(':popover-open');
    assert.match((await shown.innerText()).toLowerCase(), new RegExp(`^${name.replace(/s$/, '')}`));
    await page.keyboard.press('Escape');
    assert.equal(await shown.count(), 0);
  }
});

test('every explained word has its explanation', async () => {
  const page = await open(`${URL_OF_PAGE}#text=two`);
  const missing = await page.evaluate(() =>
    [...document.querySelectorAll('.word')]
      .map((word) => word.getAttribute('popovertarget'))
      .filter((id) => !document.getElementById(id)),
  );
  assert.deepEqual(missing, []);
});
