/**
 * What a service worker imports to keep what a page needs to translate without a network: the
 * service worker of a site, and one beside a page of your own ("Offline" in the guide).
 *
 * The network comes first: on the same address there may be another file tomorrow. Only the
 * files that are named are kept and answered: whatever else is at the host is not ours.
 */

const KEPT = 'keras-vanilla-translator';
const TRANSLATE = [
  'translate.js',
  'translator.js',
  'sentence_queue.js',
  'words.js',
  'doubts.js',
  'marks.js',
  'marked_text.js',
  'flatbuffer.js',
  'description.js',
  'errors.js',
  'fetched.js',
  'pace.js',
  'long_text.js',
  'sentences.js',
  'worker.js',
];
const API = ['polyfill.js', 'manifest.js', 'languages.js']; // which keeps models itself
// As in worker.js: LiteRT.js has a WASM for browsers with these operations, and one without.
const RELAXED_SIMD =
  '0061736d010000000105016000017b030201000a0f010d004101fd0f4102fd0ffd80020b';
const WASM = WebAssembly.validate(
  Uint8Array.from(RELAXED_SIMD.match(/../g), (octet) => parseInt(octet, 16)),
)
  ? 'core/wasm/litert_wasm_internal'
  : 'core/wasm/litert_wasm_compat_internal';

/**
 * The files of this module and of its runtime in this browser.
 *
 * @param {string} folder Where the module is, with a slash at its end.
 * @param {string} [runtime] Where npm's folder `@litertjs` is.
 */
function moduleIn(folder, runtime = `${folder}runtime/`) {
  const files = [...TRANSLATE, ...API].map((path) => folder + path);
  return [...files, ...runtimeIn(runtime)];
}

/** The two files of the runtime that this browser loads. */
function runtimeIn(folder) {
  return ['js', 'wasm'].map((type) => `${folder.replace(/\/*$/, '/')}${WASM}.${type}`);
}

/**
 * Keeps files from now on.
 *
 * @param {string[]} atOnce What is fetched at once, relative to the service worker.
 * @param {string[]} [later] What is kept when a page loads it.
 */
function keepOffline(atOnce, later = []) {
  const ours = new Set([...atOnce, ...later].map((path) => new URL(path, location).href));
  self.addEventListener('install', (event) => {
    event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(atOnce)));
    self.skipWaiting();
  });
  self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
  self.addEventListener('fetch', (event) => {
    const { method, url } = event.request;
    const [address] = url.split('#');
    if (method === 'GET' && ours.has(address)) event.respondWith(answer(event.request));
  });
}

async function answer(request) {
  const cache = await caches.open(KEPT);
  try {
    const response = await fetch(request);
    // Without space for it, the page works all the same.
    if (response.ok) await cache.put(request, response.clone()).catch(() => {});
    return response;
  } catch (error) {
    const kept = await cache.match(request);
    if (kept) return kept;
    throw error;
  }
}
