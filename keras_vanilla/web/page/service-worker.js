/**
 * Keeps what the page has loaded, for when there is no network.
 *
 * The network comes first: on the same address there may be another model tomorrow. Only
 * the files listed here are kept and answered: whatever else is at this host is not ours.
 */

const KEPT = 'keras-vanilla-translator';
const PAGE = [
  './',
  'style.css',
  'page.js',
  'address.js',
  'buttons.js',
  'element.js',
  'opening.js',
  'result.js',
  'translate.js',
  'translator.js',
  'sentence_queue.js',
  'words.js',
  'marks.js',
  'marked_text.js',
  'word_links.js',
  'flatbuffer.js',
  'description.js',
  'errors.js',
  'fetched.js',
  'pace.js',
  'about.js',
  'long_text.js',
  'sentences.js',
  'worker.js',
  'icon.svg',
  'manifest.webmanifest',
];
const LOADED_LATER = [
  'translator.tflite',
  'runtime/core/wasm/litert_wasm_internal.js',
  'runtime/core/wasm/litert_wasm_internal.wasm',
  'runtime/core/wasm/litert_wasm_compat_internal.js',
  'runtime/core/wasm/litert_wasm_compat_internal.wasm',
  'inside.tflite',
  ...[
    'index.html',
    'style.css',
    'page.js',
    'address.js',
    'attended.js',
    'attention.js',
    'beams.js',
    'explained.js',
    'leave_out.js',
    'model.js',
    'next_pieces.js',
    'pieces.js',
    'search.js',
    'target.js',
    'tour.js',
    'tour.json',
    'tour_steps.js',
    'tree.js',
    'vocabulary.js',
    'worker.js',
  ].map((path) => `inside/${path}`),
];
const OURS = new Set([...PAGE, ...LOADED_LATER].map((path) => new URL(path, location).href));

self.addEventListener('install', (event) => {
  event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(PAGE)));
  self.skipWaiting();
});

self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

self.addEventListener('fetch', (event) => {
  const { method, url } = event.request;
  const [address] = url.split('#');
  if (method === 'GET' && OURS.has(address)) event.respondWith(answer(event.request));
});

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
