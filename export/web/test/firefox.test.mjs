/** The pages in Firefox, over WebDriver BiDi; Node.js 20 needs --experimental-websocket. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

const setting = JSON.parse(readFileSync(process.env.KERAS_VANILLA_WEB_TEST));
const profile = mkdtempSync(join(tmpdir(), 'keras-vanilla-firefox-'));
const firefox = spawn(
  setting.firefox,
  ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0'],
  { stdio: ['ignore', 'ignore', 'pipe'] },
);
after(async () => {
  const ended = new Promise((done) => firefox.once('exit', done));
  firefox.kill();
  await ended;
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
});

/** The address at which Firefox listens, which it writes to standard error. */
const address = await new Promise((found, failed) => {
  let said = '';
  firefox.stderr.on('data', (data) => {
    said += data;
    const match = /WebDriver BiDi listening on (ws:\S+)/.exec(said);
    if (match) found(`${match[1]}/session`);
  });
  firefox.once('exit', () => failed(new Error(said)));
});

const socket = new WebSocket(address);
await new Promise((open) => socket.addEventListener('open', open));
const waiting = new Map();
socket.addEventListener('message', ({ data }) => {
  const { id, ...answer } = JSON.parse(data);
  waiting.get(id)?.(answer);
});

let count = 0;

async function command(method, params) {
  const id = (count += 1);
  const answer = new Promise((done) => waiting.set(id, done));
  socket.send(JSON.stringify({ id, method, params }));
  const { type, result, message } = await answer;
  assert.equal(type, 'success', `${method}: ${message}`);
  return result;
}

await command('session.new', { capabilities: {} });
const { contexts } = await command('browsingContext.getTree', {});
const [{ context }] = contexts;

async function goTo(url) {
  await command('browsingContext.navigate', { context, url, wait: 'complete' });
}

/** What a function returns in the page, as JSON. */
async function inPage(compute, ...given) {
  const call = `(${compute})(...${JSON.stringify(given)})`;
  const { type, result, exceptionDetails } = await command('script.evaluate', {
    expression: `(async () => JSON.stringify(await ${call}))()`,
    target: { context },
    awaitPromise: true,
  });
  assert.equal(type, 'success', exceptionDetails?.text);
  return JSON.parse(result.value);
}

test('it translates as Python does', async () => {
  await goTo(setting.url);
  const sources = setting.texts.map(([source]) => source);
  const found = await inPage(async (sources) => {
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
  await goTo(`${setting.url}inside/index.html#text=${encodeURIComponent(source)}`);
  const seen = await inPage(async () => {
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
