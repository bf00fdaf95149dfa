/** The page with a file that says which words belong together, and how sure it is. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEVICES, open, photograph, setting, translated, type } from './setting.mjs';

const { urls, partners } = setting;

const chosen = (page) =>
  page.evaluate(() => ({
    word: document.activeElement.textContent,
    source: document.querySelector('#echo mark')?.textContent,
    said: document.querySelector('#word').textContent,
  }));

for (const device of Object.keys(DEVICES)) {
  test(`${device}: a word that is tapped shows what it translates`, async () => {
    const page = await open(urls.linked, device);
    const text = await type(page, 'one  two\nthree four\nfive');
    assert.equal(await page.locator('.word').count(), text.split(/\s+/u).length);
    for (const word of await page.locator('.word').all()) {
      await (device === 'phone' ? word.tap() : word.click());
      const { source, said } = await chosen(page);
      const name = await word.textContent();
      if (partners[name]) assert.equal(source, partners[name]);
      assert.match(said, new RegExp(`^“${name}” translates “.+”. Probability \\d+ %.$`));
    }
    assert.deepEqual(page.errors, []);
  });

  test(`${device}: the mark lies exactly behind the word`, async () => {
    const page = await open(urls.linked, device);
    await type(page, 'small large river stone house tree red green blue\n\none two three');
    await page.locator('.word').first().click();
    const { text, echo, box } = await page.evaluate(() => {
      const [source, echo] = ['#source', '#echo'].map((id) => document.querySelector(id));
      const styles = ['font', 'lineHeight', 'whiteSpace', 'overflowWrap', 'paddingLeft'];
      const of = (node) => styles.map((name) => getComputedStyle(node)[name]);
      const inner = ({ offsetLeft, offsetTop, offsetWidth }) => [offsetLeft, offsetTop, offsetWidth];
      return { text: of(source), echo: of(echo), box: [inner(source), inner(echo)] };
    });
    assert.deepEqual(echo, text);
    assert.deepEqual(box[0], box[1]);
    await photograph(page, `${device}-word`);
  });
}

test('the arrow keys go from word to word', async () => {
  const page = await open(urls.linked);
  await type(page, 'one two three');
  await page.focus('#source');
  for (let i = 0; i < 3; i++) {
    await page.keyboard.press('Tab');
    if (await page.evaluate(() => document.activeElement.id === 'translation')) break;
  }
  const seen = [];
  for (const key of ['ArrowRight', 'ArrowRight', 'End', 'ArrowLeft', 'Home']) {
    await page.keyboard.press(key);
    const { word, source } = await chosen(page);
    seen.push(`${word} ${source}`);
  }
  const [three, two, one] = ['drie three', 'twee two', 'een one'];
  assert.deepEqual(seen, [three, two, one, two, three]);
  await page.keyboard.press('Escape');
  assert.equal((await chosen(page)).said, '');
});

test('a word is forgotten when the text changes', async () => {
  const page = await open(urls.linked);
  await type(page, 'one two');
  await page.locator('.word').first().click();
  await page.fill('#source', 'three');
  await translated(page);
  const { source, said } = await chosen(page);
  assert.deepEqual([source, said], [undefined, '']);
});

test('words of low probability are underlined, with the number as their title', async () => {
  const page = await open(urls.linked);
  const text = 'zxq Hello World, how are you? dog dog dog seven qqq xx wv';
  await type(page, text);
  const words = await page.evaluate(() =>
    [...document.querySelectorAll('.word')].map((node) => {
      const line = getComputedStyle(node).textDecorationLine;
      return [node.title, line, node.classList.contains('unsure')];
    }),
  );
  const unsure = words.filter(([, , isUnsure]) => isUnsure);
  assert.ok(0 < unsure.length && unsure.length < words.length);
  for (const [title, line, isUnsure] of words) {
    assert.equal(line, isUnsure ? 'underline' : 'none');
    assert.equal(/^Probability [0-2]?\d %$|^Probability 30 %$/u.test(title), isUnsure);
  }
  await photograph(page, 'desktop-unsure');
});

test('a file that says nothing of its tokens has no words', async () => {
  const page = await open(urls.echo);
  await type(page, 'Ein Hund');
  assert.equal(await page.locator('.word, #translation[tabindex]').count(), 0);
  assert.ok(await page.locator('#hint').isHidden());
});

test('a page marks up a text', async () => {
  const page = await open(urls.linked);
  const answers = await page.evaluate(async () => {
    const { loadTranslator } = await import('./translate.js');
    const translator = await loadTranslator('translator.tflite');
    const marked = await translator.translateMarked('<b>one two</b> three');
    const { text, words } = await translator.translate('\n one two.  three\n\nfour');
    translator.close();
    const source = '\n one two.  three\n\nfour';
    const pairs = words.map((word) => [
      text.slice(word.begin, word.end),
      source.slice(word.sourceBegin, word.sourceEnd),
    ]);
    return { marked, text, pairs };
  });
  assert.equal(answers.marked, 'drie <b>twee een</b>');
  assert.deepEqual(answers.pairs.map(([word]) => word), answers.text.trim().split(/\s+/u));
  assert.deepEqual(answers.pairs.at(-1)[1], 'four');
});
