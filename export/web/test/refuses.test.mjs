import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, photograph, setting, settled, type } from './setting.mjs';

for (const [name, { url, code, message }] of Object.entries(setting.refused)) {
  test(`${name}: what is wrong with the model is said`, async () => {
    const page = await open(url, 'phone');
    assert.match(await page.innerText('#reason'), new RegExp(message));
    assert.notEqual(await page.innerText('#advice'), '');
    assert.equal(await page.isVisible('#source'), false);
    assert.deepEqual(page.errors, []);
    await photograph(page, `refused-${name}`);

    const thrown = await page.evaluate(async () => {
      const { loadTranslator, TranslatorError } = await import('/translate.js');
      return loadTranslator('/translator.tflite').catch((error) => ({
        ours: error instanceof TranslatorError,
        code: error.code,
      }));
    });
    assert.deepEqual(thrown, { ours: true, code });
  });
}

for (const { name, url } of setting.noText) {
  test(`${name}: an answer that is not text is not shown`, async () => {
    const page = await open(url);
    assert.equal(await page.innerText('#reason'), ''); // the file has no checksum
    await type(page, 'Ein Hund.');
    assert.match(await page.innerText('#problem'), /The file is damaged: .* is not text/);
    assert.equal(await page.innerText('#translation mark'), 'Ein Hund.');
    assert.equal(await page.isVisible('#copy'), false);
    await photograph(page, `no-text-${name}`);
  });
}

test('bytes are taken as well, and bytes that are no model refused', async () => {
  const page = await open(setting.urls.echo);
  const found = await page.evaluate(async () => {
    const { loadTranslator } = await import('/translate.js');
    const file = await (await fetch('/translator.tflite')).arrayBuffer();
    const translator = await loadTranslator(new Uint8Array(file));
    const { text } = await translator.translate('Ein Hund.');
    const { code } = await loadTranslator(new Uint8Array(9)).catch((error) => error);
    return { text, code };
  });
  assert.deepEqual(found, { text: 'Ein Hund.', code: 'not-tflite' });
});

test('it tries again', async () => {
  const page = await open(setting.refused.missing.url);
  await page.click('#again');
  await settled(page);
  assert.ok(await page.isVisible('#reason'));
});
