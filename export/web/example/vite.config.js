import { cpSync } from 'node:fs';
import { defineConfig } from 'vite';

// The worker loads LiteRT.js's WASM by its URL: served from public/, not bundled. The variants for
// several threads and for GPUs are not used.
cpSync('node_modules/@litertjs/core/wasm', 'public/runtime/core/wasm', {
  recursive: true,
  filter: (path) => !/threaded|jspi/.test(path),
});

export default defineConfig({
  base: './', // any folder of any static host
  optimizeDeps: { exclude: ['keras-vanilla-web'] }, // its worker.js must stay beside it
});
