/** worker.js in a thread of Node.js, with what it and LiteRT.js need of a browser. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { runInThisContext } from 'node:vm';
import { parentPort } from 'node:worker_threads';

Object.assign(globalThis, {
  self: globalThis,
  postMessage: (message) => parentPort.postMessage(message),
  importScripts: (url) => runInThisContext(readFileSync(fileURLToPath(url), 'utf8')),
  // LiteRT.js's script expects those of a CommonJS module.
  require: createRequire(import.meta.url),
  __dirname: import.meta.dirname ?? '.',
});
console.debug = () => {}; // would be standard output

await import('./worker.js');
parentPort.on('message', (data) => self.onmessage({ data }));
