/**
 * Runs a translator with LiteRT.js in a thread of its own, so that the page never freezes.
 *
 * A classic worker: LiteRT.js fetches its WASM by `importScripts`, which a module worker
 * refuses. One thread, because more need headers that plain web hosts do not send.
 */

// The model runs on the CPU: LiteRT.js must not start a GPU, nor warn that there is none.
const NO_DEVICE = { limits: {}, features: new Set(), requestDevice: async () => null };
const NO_GPU = { requestAdapter: async () => NO_DEVICE };

let litert, model, maxBytes;

/** What gives the answer to a request, by the name of the request's first field. */
const answers = { model: load, text: translate };

/** Answers one request; the next one comes only after that. */
self.onmessage = async ({ data: request }) => {
  try {
    const [asked] = Object.keys(request);
    const result = await answers[asked](request);
    self.postMessage({ result });
  } catch (error) {
    self.postMessage({ error: { code: error.code ?? 'failed', message: error.message } });
  }
};

/** Compiles a translator and runs it once; returns how many bytes of text it takes. */
async function load(request) {
  await compile(request);
  maxBytes = model.signatures.translate.getInputDetails()[0].shape[0];
  const { bytes } = await translate({ text: '' }); // the first run is slow
  if (bytes.length > 0) throw new Error('An empty text is translated');
  return { maxBytes };
}

/** Makes `litert` and `model` of a file's bytes and the URL of the runtime. */
async function compile(request) {
  try {
    litert = await loadRuntime(request.runtime);
  } catch (error) {
    throw Object.assign(error, { code: 'runtime' });
  }
  model = await litert.loadAndCompile(request.model, { accelerator: 'wasm' });
}

/** LiteRT.js, ready to run, from the `@litertjs` folder at a URL. */
async function loadRuntime(url) {
  self.fetch = reporting(self.fetch);
  self.Module = {
    locateFile: (name) => `${url}core/wasm/${name}`, // not beside this worker
    printErr: (line) => console.debug(line), // most of them are not errors
  };
  Object.defineProperty(navigator, 'gpu', { value: NO_GPU });
  const loaded = await (self.importInNode ?? importLiteRt)(url);
  await loaded.loadLiteRt(`${url}core/wasm/`);
  return loaded;
}

/** `fetch`, which also says how much has arrived of the WASM that LiteRT.js fetches by it. */
function reporting(fetch) {
  return async (...request) => {
    const response = await fetch(...request);
    const isRuntime = response.ok && response.url.endsWith('.wasm');
    if (isRuntime) report(response.clone()).catch(() => {}); // LiteRT.js says what failed
    return response;
  };
}

async function report({ body, headers }) {
  const isEncoded = headers.has('Content-Encoding'); // the length is another then
  const stated = isEncoded ? 0 : Number(headers.get('Content-Length'));
  const reader = body.getReader();
  let received = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    received += part.value.length;
    self.postMessage({ arrival: { received, stated } });
  }
}

/** Imports LiteRT.js with its one bare import spelt out: workers have no import maps. */
async function importLiteRt(url) {
  const response = await fetch(`${url}core/dist/index.js`);
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}`);
  const source = await response.text();
  const utils = JSON.stringify(`${url}wasm-utils/dist/index.js`);
  const spelt = source.replace('"@litertjs/wasm-utils"', utils);
  const blob = URL.createObjectURL(new Blob([spelt], { type: 'text/javascript' }));
  try {
    return await import(blob);
  } finally {
    URL.revokeObjectURL(blob);
  }
}

/** Maps a sentence to its translation, in UTF-8. */
async function translate({ text }) {
  const input = textTensor(text);
  const begin = performance.now();
  const outputs = await model.run('translate', { text: input });
  const milliseconds = performance.now() - begin;
  const numbers = (name) => outputs[name]?.toTypedArray();
  const [octets, ids, [score]] = ['text', 'ids', 'score'].map(numbers);
  const tokens = aboutTokens(...['text_ends', 'source_spans', 'confidence'].map(numbers));
  [input, ...Object.values(outputs)].forEach((tensor) => tensor.delete());
  const end = octets.findLastIndex((octet) => octet !== 0) + 1; // zeros follow the text
  return { bytes: octets.slice(0, end), ids, score, tokens, milliseconds };
}

/** A text in UTF-8, and zeros after it. */
function textTensor(text) {
  const padded = new Uint8Array(maxBytes);
  new TextEncoder().encodeInto(text, padded);
  return new litert.Tensor(padded, [maxBytes]);
}

/** What `export --outputs` makes a file say of the tokens that have text, if it does. */
function aboutTokens(ends, spans, confidence) {
  if (!ends) return undefined;
  const count = ends.indexOf(ends.at(-1)) + 1;
  return {
    ends: ends.slice(0, count),
    spans: spans?.slice(0, 2 * count),
    confidence: confidence?.slice(0, count),
  };
}
