/** The guided tour, as somebody takes it who has never been here. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blank, DEVICES, faults, open, photograph, setting } from './setting.mjs';

const { partners } = setting;
const URL_OF_PAGE = `${setting.urls.site}inside/index.html`;
const STEPS = 10;

const isAtStep = (page, step) =>
  page.waitForFunction((step) => document.querySelector('#tour-step').textContent.startsWith(`Step ${step} `), step);
const isShown = (page) => page.isVisible('#tour');

for (const device of Object.keys(DEVICES)) {
  test(`${device}: it leads through its steps to the reader's own sentence`, async () => {
    const page = await open(URL_OF_PAGE, device);
    const titles = new Set();
    for (let step = 1; step <= STEPS; step++) {
      await isAtStep(page, step);
      assert.equal(await page.isVisible('#intro'), false);
      titles.add(await page.innerText('#tour-title'));
      assert.ok((await page.innerText('#tour-drawing')).length > 0);
      const wide = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      assert.equal(wide, 0, `step ${step}`);
      assert.deepEqual(await page.evaluate(unexplained), []);
      assert.deepEqual(await faults(page), [], `step ${step}`);
      await photograph(page, `${device}-tour-${step}`);
      await page.click('#tour-next');
    }
    assert.equal(titles.size, STEPS);
    assert.ok(await page.isVisible('#intro'));
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
  await page.click('#tour-drawing summary');
  const rows = await page.locator('#tour-drawing details tbody tr').allInnerTexts();
  const shares = rows.map((row) => Number(/([\d.]+) %/.exec(row)[1]));
  const sum = shares.reduce((total, share) => total + share, 0);
  assert.ok(Math.abs(sum - 100) < 0.6 * shares.length, `${sum}`);
  const [products, division] = await page.locator('.formula').allInnerTexts();
  const [, added] = /^−?\d+\.\d\d · −?\d+\.\d\d \+ .+ \+ … = (−?\d+\.\d\d)$/.exec(products);
  const [dividend, quotient] = [division.split(' / ')[0], division.split(' = ').at(-1)];
  assert.equal(dividend, added);
  const [score] = await page.locator('.stages tbody tr.strong td').allInnerTexts();
  assert.equal(quotient, score);
  const few = await page.locator('.stages tbody tr').filter({ hasText: '%' }).filter({ hasNotText: ' of ' }).allInnerTexts();
  const total = few.map((row) => Number(/([\d.]+) %/.exec(row)[1])).reduce((all, share) => all + share);
  assert.ok(Math.abs(total - 100) < 0.6 * few.length, few.join());
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

test('its end leads to what a piece depends on', async () => {
  const page = await open(`${URL_OF_PAGE}#tour=${STEPS}`);
  await isAtStep(page, STEPS);
  await page.waitForFunction(() => document.querySelector('#hypotheses li'));
  const button = page.locator('#tour-drawing button').first();
  const [, name] = /“(.+)”/.exec(await button.innerText());
  await button.click();
  await page.waitForFunction((name) => document.querySelector('#without').textContent.startsWith(`“${name}” in`), name);
  assert.equal(await isShown(page), false);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'depends');
  await page.goBack();
  await isAtStep(page, STEPS);
  assert.ok(await isShown(page));
  assert.deepEqual(page.errors, []);
});

for (const device of Object.keys(DEVICES)) {
  test(`${device}: an explanation is at its word, inside the window`, async () => {
    const page = await open(`${URL_OF_PAGE}#tour=3`, device);
    await isAtStep(page, 3);
    const { width, height } = page.viewportSize();
    for (const word of await page.locator('#tour .word').all()) {
      await word.click();
      const shown = page.locator(':popover-open');
      const [at, box] = [await word.boundingBox(), await shown.boundingBox()];
      const gap = Math.max(box.y - at.y - at.height, at.y - box.y - box.height);
      assert.ok(gap >= 0 && gap < 10, `${gap}`);
      assert.ok(box.x < at.x + at.width && at.x < box.x + box.width);
      assert.ok(box.x >= 0 && box.x + box.width <= width && box.y >= 0 && box.y + box.height <= height);
      await page.mouse.click(2, 2);
      assert.equal(await shown.count(), 0);
    }
  });
}

test('a link to a sentence does not begin the tour', async () => {
  const page = await open(`${URL_OF_PAGE}#text=two%20three`);
  await page.waitForFunction(() => document.querySelector('#hypotheses li'));
  assert.equal(await isShown(page), false);
});

test('a word is explained with the keyboard alone', async () => {
  const page = await open(`${URL_OF_PAGE}#tour=3`);
  await isAtStep(page, 3);
  for (const name of ['layer', 'encoder', 'heads', 'queries']) {
    if (name === 'queries') await page.evaluate(() => (location.hash = 'tour=7'));
    await page.locator('#tour .word', { hasText: name }).focus();
    await page.keyboard.press('Enter');
    const shown = page.locator(':popover-open');
    const singular = name.replace('queries', 'query').replace(/s$/, '');
    assert.match((await shown.innerText()).toLowerCase(), new RegExp(`^${singular}`));
    await page.keyboard.press('Escape');
    assert.equal(await shown.count(), 0);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), name);
  }
});

test('every explained word has its explanation', async () => {
  const page = await open(`${URL_OF_PAGE}#text=two`);
  assert.deepEqual(await page.evaluate(unexplained), []);
});

test('brackets in a sentence stay what they are', async () => {
  const page = await blank();
  await page.route('**/tour.json', async (route) => {
    const example = await (await route.fetch()).json();
    await route.fulfill({ json: { ...example, text: 'Press [Enter] to go on.' } });
  });
  await page.goto(`${URL_OF_PAGE}#tour=1`);
  await isAtStep(page, 1);
  assert.match(await page.innerText('#tour-text'), /^The model reads “Press \[Enter\] to go on\.” as a row of pieces: /);
  assert.deepEqual(await page.locator('#tour-text .word').allInnerTexts(), ['pieces']);
});

test('each step has a box in the map that opens it', async () => {
  const page = await open(`${URL_OF_PAGE}#tour=1`);
  assert.ok(await page.getByRole('main').getByRole('navigation', { name: 'Map of the model' }).isVisible());
  assert.equal(await page.locator('#map a').count(), STEPS);
  for (let step = STEPS; step >= 1; step--) {
    await page.locator(`#map a[href="#tour=${step}"]`).click();
    await isAtStep(page, step);
    const current = page.locator('#map [aria-current=step]');
    assert.equal(await current.getAttribute('href'), `#tour=${step}`);
  }
});

test('the mask is a triangle: a row reads what was written before it, and nothing later', async () => {
  const page = await open(`${URL_OF_PAGE}#tour=6`);
  await isAtStep(page, 6);
  const rows = await page.locator('.triangle tbody tr').evaluateAll((rows) =>
    rows.map((row) => [...row.querySelectorAll('.share')].map((cell) => {
      return [cell.textContent, getComputedStyle(cell).backgroundImage.startsWith('repeating')]; // hatched
    })),
  );
  assert.ok(rows.length > 1);
  for (const [row, cells] of rows.entries()) {
    assert.deepEqual(cells.map(([, isMasked]) => isMasked), cells.map((_, column) => column > row));
    assert.ok(cells.every(([share, isMasked]) => !isMasked || share === '0 %'));
    const sum = cells.reduce((total, [share]) => total + Number.parseFloat(share), 0);
    assert.ok(Math.abs(sum - 100) < 3, `${sum}`);
  }
});

test('query, key and value have a colour each, and the sign of a number another', async () => {
  const page = await open(`${URL_OF_PAGE}#tour=3`);
  await isAtStep(page, 3);
  const colors = await page.evaluate(() =>
    ['query', 'key', 'value'].map((name) => getComputedStyle(document.querySelector(`.stages .${name}`)).color),
  );
  assert.equal(new Set(colors).size, 3, colors.join());
  const numbers = await page.locator('.stages .number').evaluateAll((cells) =>
    cells.filter(({ textContent }) => textContent !== '0.00').map((cell) => [cell.textContent.startsWith('−'), getComputedStyle(cell).getPropertyValue('--sign')]),
  );
  const signs = [true, false].map((isBelow) => new Set(numbers.filter(([below]) => below === isBelow).map(([, sign]) => sign)));
  assert.deepEqual(signs.map(({ size }) => size), [1, 1]);
  assert.notDeepEqual(signs[0], signs[1]);
});

test('operations are explained where they are named', async () => {
  const page = await open(`${URL_OF_PAGE}#tour=1`);
  const operations = ['softmax', 'self-attention', 'cross-attention', 'mask', 'residual connection', 'feed-forward network',
    'normalisation', 'positional encoding', 'greedy search', 'beam'];
  const met = new Set();
  for (let step = 1; step <= STEPS; step++) {
    await isAtStep(page, step);
    const shown = (await page.innerText('#tour-text')).toLowerCase() + (await page.innerText('#tour-drawing')).toLowerCase();
    const explained = (await page.locator('#tour .word').allInnerTexts()).map((word) => word.toLowerCase());
    for (const operation of operations.filter((name) => new RegExp(`\\b${name}\\b`).test(shown))) {
      assert.ok(explained.includes(operation), `${operation} in step ${step}`);
      met.add(operation);
    }
    if (step < STEPS) await page.click('#tour-next');
  }
  assert.deepEqual([...met].sort(), [...operations].sort());
});

test('the last step shows which word decides, for each of the two translations', async () => {
  const page = await open(`${URL_OF_PAGE}#tour=${STEPS}`);
  await isAtStep(page, STEPS);
  const shares = (await page.locator('#tour-drawing .share').allInnerTexts()).map((share) => Number.parseFloat(share.replace(/[<>]/, '')));
  const [one, other, second, own] = shares;
  assert.equal(shares.length, 6);
  assert.ok(one > other && own > second, shares.join());
  const questions = await page.locator('#tour-drawing button').allInnerTexts();
  assert.deepEqual(questions, [partners.red, partners.blue].map((name) => `Which word decides “${name}”?`));
});

/** In the page: the explanations that are missing. */
function unexplained() {
  return [...document.querySelectorAll('.word')]
    .map((word) => word.getAttribute('popovertarget'))
    .filter((id) => !document.getElementById(id));
}
