/** Weights, translations and times in a browser, for tests/benchmarks/inside_page.py. */

import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { computed } from './inside.mjs';
import { open, setting } from './setting.mjs';

test('computed', async () => {
  const results = {};
  for (const [name, url] of Object.entries(setting.urls)) {
    const page = await open(`${url}inside/index.html`);
    results[name] = [];
    for (const text of setting.lines) {
      results[name].push(await page.evaluate(computed, { text, beams: setting.beams }));
    }
  }
  writeFileSync(setting.results, JSON.stringify(results));
});
