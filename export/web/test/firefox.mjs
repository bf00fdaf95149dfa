/** Firefox, over WebDriver BiDi; Node.js 20 needs --experimental-websocket. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';

export const setting = JSON.parse(readFileSync(process.env.KERAS_VANILLA_WEB_TEST));
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

/** A tab of its own, opened at an address. */
export async function openTab(url) {
  const { context } = await command('browsingContext.create', { type: 'tab' });
  const tab = {
    async goto(url) {
      await command('browsingContext.navigate', { context, url, wait: 'complete' });
    },

    /** What a function returns in the page, as JSON. */
    async evaluate(compute, ...given) {
      const call = `(${compute})(...${JSON.stringify(given)})`;
      const { type, result, exceptionDetails } = await command('script.evaluate', {
        expression: `(async () => JSON.stringify(await ${call}))()`,
        target: { context },
        awaitPromise: true,
      });
      assert.equal(type, 'success', exceptionDetails?.text);
      return result.value && JSON.parse(result.value);
    },

    async close() {
      await command('browsingContext.close', { context });
    },
  };
  await tab.goto(url);
  return tab;
}
