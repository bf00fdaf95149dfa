import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { test } from 'node:test';
import { open, setting, settled, type } from './setting.mjs';

const { host, texts, exchanged } = setting;

test('after its first load from a web host the page needs no network', async () => {
  const page = await open(host, 'phone');
  assert.match(await page.innerText('#state'), /offline/);
  await page.context().setOffline(true);
  assert.equal(await page.evaluate(() => fetch('/?').catch(() => 'no network')), 'no network');
  await page.reload();
  await settled(page);
  const [source, text] = texts.translator[1];
  assert.equal(await type(page, source), text);
});

test('the service worker answers for nothing else at the same host', async () => {
  const page = await open(host);
  assert.ok(await page.evaluate(() => navigator.serviceWorker.controller !== null));
  const other = () =>
    page.evaluate(async () => {
      const answer = fetch('other.txt', { cache: 'no-store' }); // not the browser's either
      return answer.then((response) => response.text(), () => 'no network');
    });
  assert.equal(await other(), 'of another program');
  const kept = await page.evaluate(async () => {
    const caches_ = await Promise.all((await caches.keys()).map((name) => caches.open(name)));
    const requests = await Promise.all(caches_.map((cache) => cache.keys()));
    return requests.flat().map(({ url }) => url);
  });
  assert.ok(kept.includes(`${host}translator.tflite`));
  assert.ok(!kept.includes(`${host}other.txt`));
  await page.context().setOffline(true);
  assert.equal(await other(), 'no network');
});

test('on loopback nothing is registered, and what is there is removed', async () => {
  const page = await open(exchanged.url);
  const left = () =>
    page.evaluate(async () => [
      (await navigator.serviceWorker.getRegistrations()).length,
      (await caches.keys()).length,
    ]);
  assert.deepEqual(await left(), [0, 0]);
  assert.doesNotMatch(await page.innerText('#state'), /offline/);
  await page.evaluate(async () => { // as the page of version 0.5.0 did
    await navigator.serviceWorker.register('service-worker.js');
    await navigator.serviceWorker.ready;
  });
  assert.deepEqual(await left(), [1, 1]);
  await page.reload();
  await page.waitForFunction(() => navigator.serviceWorker.controller === null);
  await settled(page);
  assert.deepEqual(await left(), [0, 0]);
  assert.equal(await type(page, 'Ein Hund.'), 'Ein Hund.');
});

test('another file at the same address is another model on the next load', async () => {
  const page = await open(exchanged.url);
  assert.equal(await page.innerText('#name'), 'first');
  copyFileSync(exchanged.second, exchanged.file);
  await page.reload();
  await settled(page);
  assert.equal(await page.innerText('#name'), 'second');
});
