/** A web host for polyfill.js, whose answers the tests choose, and tabs of a browser there. */

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { after } from 'node:test';

export const { openTab, setting } = await browser();
export const MODEL = readFileSync(setting.model);
export const PAIR = { sourceLanguage: 'en', targetLanguage: 'nl' };
export const TYPES = { js: 'text/javascript', json: 'application/json', wasm: 'application/wasm' };
export const PAGE = '<!doctype html><title>A page</title><body>';

/** Tabs of the browser that is tested: all of them share what it keeps. */
async function browser() {
  const { firefox } = JSON.parse(readFileSync(process.env.KERAS_VANILLA_WEB_TEST));
  if (firefox) return import('./firefox.mjs');
  const { blank, setting } = await import('./setting.mjs');
  const context = (await blank()).context();
  const openTab = async (url) => {
    const page = await context.newPage();
    await page.goto(url);
    return page;
  };
  return { openTab, setting };
}

/** A web host, with an origin of its own, so that the browser has kept nothing of it. */
export class Host {
  requests = []; // the paths, in their order
  answers = new Map(); // functions of a response, by path
  policy; // the Content-Security-Policy of all answers
  #server = createServer((request, response) => this.#answer(request.url, response));

  static async open() {
    const host = new Host();
    await new Promise((done) => host.#server.listen(0, '127.0.0.1', done));
    after(() => host.stop());
    host.offers('/', PAGE, 'text/html');
    host.offers('/en-nl.tflite', MODEL);
    host.lists([host.entry('en-nl.tflite')]);
    return host;
  }

  get url() {
    return `http://127.0.0.1:${this.port}/`;
  }

  get port() {
    return this.#server.address().port;
  }

  stop() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  entry(file, facts, model = MODEL) {
    const sha256 = createHash('sha256').update(model).digest('hex');
    return { ...PAIR, file, size: model.length, sha256, ...facts };
  }

  lists(entries) {
    this.offers('/translators.json', JSON.stringify(entries), TYPES.json);
  }

  offers(path, content, type = 'application/octet-stream') {
    this.answers.set(path, (response) => {
      response.setHeader('Content-Type', type).setHeader('Cache-Control', 'max-age=3600');
      response.end(content);
    });
  }

  /**
   * Offers a file of which half is sent; when somebody has asked for it, gives a function
   * that sends the rest and a promise that the browser has ended the connection.
   */
  holds(path, content) {
    return new Promise((asked) => {
      this.answers.set(path, (response) => {
        response.setHeader('Content-Length', content.length);
        response.write(content.subarray(0, content.length >> 1));
        const ended = new Promise((done) => response.once('close', done));
        asked({ rest: () => response.end(content.subarray(content.length >> 1)), ended });
      });
    });
  }

  count(path) {
    return this.requests.filter((other) => other === path).length;
  }

  async #answer(path, response) {
    this.requests.push(path);
    if (this.policy) response.setHeader('Content-Security-Policy', this.policy);
    const answer = this.answers.get(path);
    if (answer) return answer(response);
    const [, folder, name] = /^\/translator\/(runtime\/)?(.+)$/.exec(path) ?? [];
    const file = `${folder ? setting.runtime : setting.page}/${name}`;
    const content = name && (await readFile(file).catch(() => undefined));
    const type = TYPES[path.split('.').at(-1)] ?? 'text/plain';
    response.writeHead(content ? 200 : 404, { 'Content-Type': type }).end(content);
  }

  /** A tab with `Own`, the API over this host's manifest, and what the tests do with it. */
  async tab(options = {}) {
    const tab = await openTab(this.url);
    await tab.evaluate(prepare, { pair: PAIR, options });
    return tab;
  }
}

/** In a page: names for the tests. */
export async function prepare({ pair, options }) {
  const { translatorOver } = await import('/translator/polyfill.js');
  const Own = translatorOver('translators.json', options);
  /** What a function gives; if that fails, the name of the error, its class and more. */
  const outcome = async (operation) => {
    try {
      return await operation();
    } catch (error) {
      if (!(error instanceof Error || error instanceof DOMException)) return { thrown: error };
      const { name, message, quota, requested } = error;
      return { name, type: error.constructor.name, message, quota, requested };
    }
  };
  const translate = async (text) => {
    const translator = await Own.create(pair);
    const translation = await translator.translate(text);
    translator.destroy();
    return translation;
  };
  Object.assign(globalThis, { Own, pair, outcome, translate });
}
