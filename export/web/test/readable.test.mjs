/** The page for those who see, hear or move differently, or have no JavaScript. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blank, DEVICES, open, photograph, setting, type } from './setting.mjs';

const { urls } = setting;
const LONG = 'Ein Hund rennt Hund, '.repeat(12);

/** In the page: each visible text, and its contrast to the page by the formula of WCAG 2. */
function contrasts() {
  const luminance = (color) => {
    const [r, g, b] = color.match(/[\d.]+/g).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (...colors) => {
    const [dark, light] = colors.map(luminance).sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const background = getComputedStyle(document.documentElement).backgroundColor;
  const seen = [...document.querySelectorAll('body, body *')].filter((element) =>
    element.checkVisibility({ opacityProperty: true }),
  );
  const styles = seen
    .filter(({ childNodes }) => [...childNodes].some((node) => node.nodeType === 3))
    .map((element) => [element.id || element.localName, getComputedStyle(element)]);
  const source = document.querySelector('#source');
  styles.push(['placeholder', getComputedStyle(source, '::placeholder')]);
  return {
    opacities: [...seen.map((each) => getComputedStyle(each)), styles.at(-1)[1]].map(
      ({ opacity }) => opacity,
    ),
    texts: styles.map(([name, { color }]) => [name, contrast(color, background)]),
    focus: contrast(getComputedStyle(source).borderLeftColor, background),
  };
}

for (const device of Object.keys(DEVICES)) {
  test(`${device}: every text has a contrast of 4.5 to 1`, async () => {
    const page = await open(urls.echo, device);
    await type(page, LONG);
    await page.click('summary');
    for (const stale of [false, true]) {
      await page.evaluate((stale) => document.body.classList.toggle('stale', stale), stale);
      await page.waitForTimeout(500); // its colour changes slowly
      const { texts, opacities } = await page.evaluate(contrasts);
      assert.deepEqual([...new Set(opacities)], ['1']);
      const names = texts.map(([name]) => name);
      for (const name of ['placeholder', 'translation', 'too-long', 'time', 'dt', 'state']) {
        assert.ok(names.includes(name), `${name} is not among ${names}`);
      }
      for (const [name, contrast] of texts) assert.ok(contrast >= 4.5, `${name} ${contrast}`);
      const { translation, 'too-long': ofTooLong } = Object.fromEntries(texts);
      assert.equal(translation === ofTooLong, stale); // both are of the text before
    }
  });

  test(`${device}: where the keyboard is can be seen`, async () => {
    const page = await open(urls.echo, device);
    await type(page, 'Ein Hund.');
    assert.ok((await page.evaluate(contrasts)).focus >= 3);
    await photograph(page, `${device}-focus`);
    await page.keyboard.press('Tab');
    const style = (id) => page.evaluate((id) => {
      const { outlineStyle, borderLeftColor } = getComputedStyle(document.querySelector(id));
      return { outlineStyle, borderLeftColor };
    }, id);
    assert.equal((await style('#clear')).outlineStyle, 'solid');
    assert.equal((await style('#source')).borderLeftColor, 'rgba(0, 0, 0, 0)');
  });
}

test('every field and button has a name, and what changes is announced', async () => {
  const page = await open(urls.echo);
  await type(page, LONG);
  assert.ok(await page.getByRole('textbox', { name: 'German' }).isVisible());
  assert.ok(await page.getByRole('status', { name: 'Brazilian Portuguese' }).isVisible());
  for (const name of ['Clear', 'Copy', 'Copy link']) {
    assert.ok(await page.getByRole('button', { name, exact: true }).isVisible(), name);
  }
  const described = await page.getAttribute('#source', 'aria-describedby');
  assert.match(await page.innerText(`#${described}`), /^Too long/);
});

test('without JavaScript one sentence says what is missing', async () => {
  const page = await blank({ javaScriptEnabled: false });
  await page.goto(urls.echo);
  const text = await page.innerText('body');
  assert.match(text, /translates in your browser, with JavaScript/);
  assert.doesNotMatch(text, /Loading|Type or paste/);
  assert.equal(await page.isVisible('#source'), false);
  await photograph(page, 'no-javascript');
});
