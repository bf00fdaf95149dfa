/** The pages in Firefox. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openTab, setting } from './firefox.mjs';

test('it translates as Python does', async () => {
  const page = await openTab(setting.url);
  const sources = setting.texts.map(([source]) => source);
  const found = await page.evaluate(async (sources) => {
    const { loadTranslator } = await import('/translate.js');
    const translator = await loadTranslator('/translator.tflite');
    const found = [];
    for (const source of sources) found.push((await translator.translateSentence(source)).text);
    translator.close();
    return found;
  }, sources);
  assert.deepEqual(found, setting.texts.map(([, text]) => text));
  assert.ok(found.length >= 20);
});

test('it looks inside', async () => {
  const [source, text] = setting.texts[0];
  const address = `inside/index.html#text=${encodeURIComponent(source)}`;
  const page = await openTab(setting.url + address);
  const seen = await page.evaluate(async () => {
    while (!document.querySelector('#hypotheses li')) {
      await new Promise((done) => setTimeout(done, 50));
    }
    const names = (selector) => [...document.querySelectorAll(selector)].map((each) => each.textContent);
    return {
      best: document.querySelector('#hypotheses button').textContent,
      weights: names('#encoder .weights tr.chosen td').length,
      tree: names('#tree g').length,
      heads: document.querySelectorAll('#encoder canvas').length,
    };
  });
  assert.equal(seen.best, text);
  assert.ok(seen.weights > 1 && seen.tree > seen.weights && seen.heads > 1, JSON.stringify(seen));
});
