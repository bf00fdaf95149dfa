/**
 * Keeps what the page has loaded, for when there is no network.
 *
 * The network comes first: on the same address there may be another model tomorrow.
 */

const KEPT = 'keras-vanilla-translator';
const PAGE = [
  './',
  'style.css',
  'page.js',
  'translate.js',
  'description.js',
  'errors.js',
  'about.js',
  'sentences.js',
  'worker.js',
  'icon.svg',
  'manifest.webmanifest',
];

self.addEventListener('install', (event) => {
  // These were loaded before this worker saw requests; it sees the model's and LiteRT.js's.
  event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(PAGE)));
  self.skipWaiting();
});

self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

self.addEventListener('fetch', (event) => {
  const { request } = event;
  const ours = new URL(request.url).origin === self.location.origin;
  if (request.method === 'GET' && ours) event.respondWith(answer(request));
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
