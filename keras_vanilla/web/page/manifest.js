/** The translators that a manifest lists, and their files, which the browser keeps. */

import { TranslatorError } from './errors.js';
import { absolute, fetched } from './fetched.js';
import { canonical } from './languages.js';

/** A list of translators at a host, such as translators.json. */
export class Manifest {
  #url;
  #pairs;

  /** @param {string|URL} url */
  constructor(url) {
    this.#url = absolute(url);
  }

  /**
   * The pairs of languages, read once; without a network, as they were the last time.
   *
   * @returns {Promise<Pair[]>}
   * @throws {TranslatorError} "missing" or "damaged"; the next call reads it again.
   */
  async pairs() {
    this.#pairs ??= this.#read();
    try {
      return await this.#pairs;
    } catch (error) {
      this.#pairs = undefined;
      throw error;
    }
  }

  /**
   * Where the file of a pair is: "available", "downloading" or "downloadable".
   *
   * @param {Pair} pair
   */
  async availability({ key }) {
    const cache = await this.#cache();
    if (!cache) return 'downloadable';
    if (await cache.match(key)) return 'available';
    const { held } = await navigator.locks.query();
    return held.some(({ name }) => name === key) ? 'downloading' : 'downloadable';
  }

  /**
   * The bytes of a pair's file: those that the browser has kept, if they are whole, or else
   * the host's. If several pages ask at the same time, one downloads.
   *
   * @param {Pair} pair
   * @param {{signal?: AbortSignal, onProgress?: function(import('./translate.js').Progress)}}
   *     options
   * @returns {Promise<Uint8Array>}
   * @throws {TranslatorError} "missing" or "damaged"; or the signal's reason.
   */
  async bytes(pair, options) {
    const cache = await this.#cache();
    if (!cache) return this.#download(pair, options);
    return navigator.locks.request(pair.key, { signal: options.signal }, async () => {
      const kept = await cache.match(pair.key);
      const bytes = kept && new Uint8Array(await kept.arrayBuffer());
      if (bytes && (await isWhole(bytes, pair))) return bytes;
      // Not from the browser's other cache, which might give a damaged file again.
      const downloaded = await this.#download(pair, { ...options, cache: 'no-store' });
      await this.#keep(downloaded, pair, cache).catch(() => {}); // there may be no space
      return downloaded;
    });
  }

  async #download(pair, options) {
    const bytes = await fetched(pair.url, options);
    if (await isWhole(bytes, pair)) return bytes;
    this.#pairs = undefined; // the host may have another file and another manifest by now
    throw new TranslatorError(
      'damaged',
      `The file is damaged, or it is not the one that the manifest lists: ${pair.url}`,
    );
  }

  /** Keeps a file, and none that the manifest does not list any more. */
  async #keep(bytes, { key }, cache) {
    const listed = new Set([this.#url, ...(await this.pairs()).map((pair) => pair.key)]);
    for (const request of await cache.keys()) {
      if (!listed.has(request.url)) await cache.delete(request);
    }
    await cache.put(key, new Response(bytes));
  }

  async #read() {
    const cache = await this.#cache();
    const response = await fetch(this.#url, { cache: 'no-cache' }).catch(() => undefined);
    if (response?.ok) {
      const text = await response.text();
      const pairs = this.#parsed(text);
      await cache?.put(this.#url, new Response(text)).catch(() => {});
      return pairs;
    }
    const kept = await cache?.match(this.#url);
    if (kept) return this.#parsed(await kept.text());
    const why = response ? `answered ${response.status}` : 'cannot be reached';
    throw new TranslatorError('missing', `The manifest ${why}: ${this.#url}`);
  }

  #parsed(text) {
    try {
      return JSON.parse(text).map((entry) => pairOf(entry, this.#url));
    } catch ({ message }) {
      throw new TranslatorError(
        'damaged',
        `This is not a manifest of translators: ${this.#url} (${message})`,
      );
    }
  }

  /** This manifest's cache; undefined on plain http, and where the browser allows none. */
  async #cache() {
    try {
      return await caches.open(`keras-vanilla ${this.#url}`);
    } catch {
      return undefined;
    }
  }
}

/**
 * An entry of a manifest, with absolute URLs and canonical tags.
 *
 * @typedef {{sourceLanguage: string, targetLanguage: string, url: string, size: number,
 *     sha256: string, key: string}} Pair `key` is the name of the file in the cache, and of
 *     the lock on it.
 */
function pairOf({ sourceLanguage, targetLanguage, file, size, sha256 }, manifest) {
  const { href: url } = new URL(file, manifest);
  if (!(size > 0)) throw new TypeError(`the size of ${file} is ${size}`);
  if (!/^[\da-f]{64}$/.test(sha256)) throw new TypeError(`the SHA-256 of ${file} is ${sha256}`);
  const key = new URL(url);
  key.searchParams.set('sha256', sha256);
  const [source, target] = [sourceLanguage, targetLanguage].map(canonical);
  return { sourceLanguage: source, targetLanguage: target, url, size, sha256, key: key.href };
}

/** Whether bytes are those of a file; on plain http, only whether they are as many. */
async function isWhole(bytes, { size, sha256 }) {
  if (bytes.length !== size) return false;
  const { subtle } = globalThis.crypto;
  if (!subtle) return true;
  const digest = new Uint8Array(await subtle.digest('SHA-256', bytes));
  return sha256 === Array.from(digest, (octet) => octet.toString(16).padStart(2, '0')).join('');
}
