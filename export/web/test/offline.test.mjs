import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { test } from 'node:test';
import { open, setting, settled, type } from './setting.mjs';

const { urls, texts, exchanged } = setting;

test('after its first load the page needs no network', async () => {
  const page = await open(urls.translator, 'phone');
  assert.match(await page.innerText('#state'), /offline/);
  await page.context().setOffline(true);
  assert.equal(await page.evaluate(() => fetch('/?').catch(() => 'no network')), 'no network');
  await page.reload();
  await settled(page);
  const [source, text] = texts.translator[1];
  assert.equal(await type(page, source), text);
});

test('another file at the same address is another model on the next load', async () => {
  const page = await open(exchanged.url);
  assert.equal(await page.innerText('#name'), 'first');
  copyFileSync(exchanged.second, exchanged.file);
  await page.reload();
  await settled(page);
  assert.equal(await page.innerText('#name'), 'second');
});
