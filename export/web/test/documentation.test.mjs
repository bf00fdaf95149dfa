/** The documentation for those who read it with a keyboard, a screen reader or a phone. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blank, faults, setting } from './setting.mjs';

const { pages, urls } = setting;
const LEAST = 6; // pixels of a letter
const RULES = [
  'aria-required-attr', // a heading without its level
  'definition-list',
  'empty-table-header',
  'landmark-unique',
  'scrollable-region-focusable',
];

test('axe finds nothing on any page', async () => {
  assert.ok(pages.length > 40);
  const page = await blank({ viewport: { width: 800, height: 800 } });
  const found = [];
  for (const path of pages) {
    await page.goto(`${urls.documentation}${path}`);
    found.push(...(await faults(page, RULES)).map((fault) => `${path}: ${fault}`));
  }
  assert.deepEqual(found, []);
});

test('the key of the colours can be read in the dark', async () => {
  const page = await blank({ colorScheme: 'dark' });
  await page.goto(`${urls.documentation}notebooks/1_attention.html`);
  assert.ok((await page.locator('p span[style*="color:#"]').count()) > 5);
  assert.deepEqual(await faults(page, ['color-contrast']), []);
});

test('letters in the pictures of notebooks can be read on a phone', async () => {
  const page = await blank({ viewport: { width: 360, height: 800 } });
  let count = 0;
  for (const path of pages.filter((path) => /notebooks\/\d/.test(path))) {
    await page.goto(`${urls.documentation}${path}`);
    const sizes = await page.evaluate(smallestLetters);
    count += sizes.length;
    const isReadable = ([, size]) => size >= LEAST && size < Infinity; // which it is without letters
    assert.deepEqual(sizes.filter((each) => !isReadable(each)), [], path);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(wide, 0, path);
  }
  assert.ok(count > 70, `${count}`);
});

/** In the page: the smallest letters of each picture, in pixels on the screen. */
async function smallestLetters() {
  const pictures = [...document.querySelectorAll('.cell_output img[src$=".svg"]')];
  return Promise.all(pictures.map(async ({ src, clientWidth }) => {
    const drawing = new DOMParser().parseFromString(await (await fetch(src)).text(), 'image/svg+xml');
    const width = Number(drawing.documentElement.getAttribute('viewBox').split(' ')[2]);
    const letters = [...drawing.querySelectorAll('text, tspan')].filter((each) => !each.querySelector('tspan'));
    const fonts = letters.map(({ style }) => Number.parseFloat(style.fontSize)); // a formula has parts
    return [src, (Math.min(...fonts) * clientWidth) / width];
  }));
}
