/** Keeps what both pages of a site have loaded, for when there is no network. */

importScripts('offline.js');

const PAGE = [
  './',
  'style.css',
  'page.js',
  'address.js',
  'buttons.js',
  'element.js',
  'opening.js',
  'result.js',
  'word_links.js',
  'about.js',
  'icon.svg',
  'manifest.webmanifest',
];
const LOADED_LATER = [
  'translator.tflite',
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

keepOffline([...PAGE, ...TRANSLATE], [...LOADED_LATER, ...runtimeIn('runtime/')]);
