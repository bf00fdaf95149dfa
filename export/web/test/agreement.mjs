/** Translations of lines in a browser, for tests/benchmarks/browser_agreement.py. */

import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { open, setting } from './setting.mjs';

test('translations', async () => {
  const results = {};
  for (const [name, url] of Object.entries(setting.urls)) {
    const page = await open(url);
    results[name] = await page.evaluate(translations, setting.lines);
  }
  writeFileSync(setting.results, JSON.stringify(results));
});

/** Runs in the page. */
async function translations(lines) {
  const { loadTranslator } = await import('/translate.js');
  const translator = await loadTranslator('/translator.tflite');
  const results = await Promise.all(lines.map((line) => translator.translateSentence(line)));
  return results.map(({ text }) => text);
}
