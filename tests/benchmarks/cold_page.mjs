/**
 * How many bytes and seconds a cold page takes until its first translation.
 *
 *     npm ci --ignore-scripts --prefix export/web
 *     node tests/benchmarks/cold_page.mjs [RUNS] [CHROMIUM]
 *
 * The page is the first example of export/web/README.md with the pretrained translator, on a host
 * that compresses with Brotli. Each run is a new profile of Chromium, once as it is and once as a
 * phone, with the network that DevTools calls "Fast 4G": 8.1 Mbit/s, and 165 ms before each answer.
 * Chromium's throttling of the processor leaves out workers, so the phone's is the page's process
 * stopped for three quarters of the time (SIGSTOP), which slows all its threads by 4. `network` is
 * what the bytes take at that rate; `processor` is the time of all threads of the page's process,
 * which other programs on the machine hardly change. The first run of each, in which the host
 * compresses, is left out.
 */

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import { brotliCompressSync, constants } from 'node:zlib';

const ROOT = new URL('../../', import.meta.url);
const { chromium } = createRequire(new URL('export/web/', ROOT))('playwright-core');
const [runs = 3, executablePath = '/usr/bin/chromium'] = process.argv.slice(2);
const PHONE = { name: 'phone', rate: 8.1e6 / 8, latency: 165, slower: 4 };
const DESKTOP = { name: 'as it is', rate: Infinity, latency: 0, slower: 1 };
const TYPES = { html: 'text/html', js: 'text/javascript', wasm: 'application/wasm' };
const STOPPED = 20; // milliseconds in which the page's process runs once

const model = new URL('keras_vanilla/pretrained/en-fr/translator.tflite', ROOT);
const [html] = /(?<=```html\n)[^]*?(?=```)/.exec(readFileSync(new URL('export/web/README.md', ROOT)));
const { default: crypto } = await import('node:crypto');
const content = readFileSync(model);
const sha256 = crypto.createHash('sha256').update(content).digest('hex');
const pair = { sourceLanguage: 'en', targetLanguage: 'fr', file: 'en-fr.tflite' };
const manifest = JSON.stringify([{ ...pair, size: content.length, sha256 }]);
const page = `<!doctype html><meta charset="utf-8"><title>A page</title><body>${html}`;
const compressed = new Map();

/** The file at a path, as a web host has it compressed. */
function fileAt(path) {
  const made = { '/': page, '/translators.json': manifest, '/en-fr.tflite': content };
  const [, runtime, name] = /^\/translator\/(runtime\/)?(.+)$/.exec(path) ?? [];
  const folder = runtime ? 'export/web/node_modules/@litertjs/' : 'keras_vanilla/web/page/';
  if (!compressed.has(path)) {
    const body = made[path] ?? (name && readFileSync(new URL(folder + name, ROOT)));
    if (body === undefined) return undefined;
    const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
    compressed.set(path, brotliCompressSync(body, { params }));
  }
  return compressed.get(path);
}

/** A host; `sent` are the bytes of each path. */
class Host {
  sent = new Map();
  server = createServer(({ url: path }, response) => {
    const body = fileAt(path);
    if (!body) return response.writeHead(404).end();
    this.sent.set(path, body.length);
    const type = TYPES[path === '/' ? 'html' : path.split('.').at(-1)] ?? 'application/octet-stream';
    return response.writeHead(200, { 'Content-Type': type, 'Content-Encoding': 'br' }).end(body);
  });
}

/** Lets a process run for one part of the time, until the function is called. */
function slowed(pid, slower) {
  let isOver = slower === 1;
  const ended = (async () => {
    while (!isOver) {
      process.kill(pid, 'SIGSTOP');
      await pause(STOPPED * (slower - 1));
      process.kill(pid, 'SIGCONT');
      await pause(STOPPED);
    }
  })();
  return () => {
    isOver = true;
    return ended;
  };
}

async function run(profile) {
  const host = new Host();
  await new Promise((done) => host.server.listen(0, '127.0.0.1', done));
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
  try {
    return { ...(await measured(browser, host, profile)), sent: host.sent };
  } finally {
    await browser.close();
    host.server.close();
  }
}

async function measured(browser, host, profile) {
  const tab = await browser.newPage();
  const session = await browser.newBrowserCDPSession();
  const network = await tab.context().newCDPSession(tab);
  if (profile === PHONE) {
    const { rate, latency } = profile;
    const conditions = { latency, downloadThroughput: rate, uploadThroughput: rate };
    await network.send('Network.enable');
    await network.send('Network.emulateNetworkConditions', { offline: false, ...conditions });
  }
  const url = `http://127.0.0.1:${host.server.address().port}/`;
  const begin = performance.now();
  await tab.goto(url, { waitUntil: 'commit' }); // its process begins with it
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  const newest = processInfo.filter(({ type }) => type === 'renderer').at(-1);
  const finish = slowed(newest.id, profile.slower);
  let seconds;
  try {
    await tab.waitForFunction(() => document.body?.innerText, undefined, { polling: 20 });
    seconds = (performance.now() - begin) / 1000;
  } finally {
    await finish(); // a process that is stopped would outlive its browser
  }
  const { processInfo: after } = await session.send('SystemInfo.getProcessInfo');
  const processor = after.find(({ id }) => id === newest.id).cpuTime;
  const bytes = [...host.sent.values()].reduce((sum, size) => sum + size, 0);
  return { seconds, processor, bytes, network: bytes / profile.rate, text: await tab.innerText('body') };
}

for (const profile of [DESKTOP, PHONE]) {
  for (let i = 0; i <= runs; i++) {
    const { seconds, processor, bytes, network, sent, text } = await run(profile);
    if (i === 0 && profile === DESKTOP) {
      const parts = { WASM: /wasm$/, model: /tflite$/, rest: /(?<!wasm|tflite)$/ };
      for (const [name, pattern] of Object.entries(parts)) {
        const own = [...sent].filter(([path]) => pattern.test(path));
        const sum = own.reduce((total, [, size]) => total + size, 0);
        console.log(`${name}: ${(sum / 1000).toFixed(0)} kB, ${own.length} requests`);
      }
      console.log(text);
    }
    if (i === 0) continue;
    const named = { total: seconds, network, beyond: seconds - network, processor };
    const figures = Object.entries(named).map(([name, value]) => `${name} ${value.toFixed(2)} s`);
    console.log(`${profile.name}: ${(bytes / 1e6).toFixed(2)} MB, ${figures.join(', ')}`);
  }
}
