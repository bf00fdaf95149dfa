/** README.md's module that downloads, verifies and swaps a newer model. */

import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { open, setting } from './setting.mjs';

const { url, folder, sha256 } = setting;
const MANIFEST = `${folder}/model.json`;

/** In the page: what `update` gives or throws, and the name of the model after it. */
async function updated() {
  const module = await import('/update.js');
  const result = await module.update().catch(({ message }) => message);
  const { text } = await module.translator.translate('Ein Hund.');
  return [result, module.translator.description.name, text];
}

test('a newer model is taken if it is whole, once, and kept', async () => {
  const page = await open(url);
  const update = (manifest) => {
    writeFileSync(MANIFEST, JSON.stringify(manifest));
    return page.evaluate(updated);
  };
  const [damaged, first] = await update({ file: 'damaged.tflite', sha256 });
  assert.match(damaged, /damaged\.tflite\?.* is damaged/);
  assert.equal(first, 'short');
  const [missing] = await update({ file: 'none.tflite', sha256 });
  assert.match(missing, /answered 404/);
  const echo = { file: 'echo.tflite', sha256 };
  assert.deepEqual(await update(echo), [true, 'An echo', 'Ein Hund.']);
  assert.deepEqual(await update(echo), [false, 'An echo', 'Ein Hund.']);

  rmSync(`${folder}/echo.tflite`);
  await page.reload(); // starts with the one that it has kept
  assert.deepEqual(await page.evaluate(updated), [false, 'An echo', 'Ein Hund.']);
  const kept = await page.evaluate(async () =>
    (await (await caches.open('translator-models')).keys()).length,
  );
  assert.equal(kept, 1);
});
