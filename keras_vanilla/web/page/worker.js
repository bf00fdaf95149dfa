/**
 * Runs a translator with LiteRT.js in a thread of its own, so that the page never freezes.
 *
 * It calls LiteRT.js's WASM itself: the JavaScript module around that has an import without a
 * path, which a worker can only resolve in a rewritten copy, from a `blob:` address that a
 * Content-Security-Policy and browser extensions forbid. A classic worker, because the WASM's
 * script needs `importScripts`. One thread: more need headers that plain web hosts do not send.
 */

// LiteRT.js has a WASM with these operations and one without: a function that returns
// i8x16.relaxed_swizzle of two constants.
const RELAXED_SIMD = Uint8Array.from(
  '0061736d010000000105016000017b030201000a0f010d004101fd0f4102fd0ffd80020b'.match(/../g),
  (octet) => parseInt(octet, 16),
);
const NUMBERS = { 1: Float32Array, 2: Int32Array, 3: Uint8Array }; // by TensorFlow Lite's types

let wasm, environment, model, maxBytes;

/** What gives the answer to a request, by the name of the request's first field. */
const answers = { runtime: loadRuntime, model: load, text: translate };

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
  maxBytes = model.inputs('translate').text[0];
  const { bytes } = await translate({ text: '' }); // the first run is slow
  if (bytes.length > 0) throw new Error('An empty text is translated');
  return { maxBytes };
}

/** Makes `model` of a file's bytes. */
async function compile(request) {
  model = await Model.compile(request.model);
}

/** Makes `wasm` and `environment` of the `@litertjs` folder at a URL. */
async function loadRuntime({ runtime }) {
  self.fetch = reporting(self.fetch);
  const folder = `${runtime}core/wasm/`;
  const variant = WebAssembly.validate(RELAXED_SIMD) ? 'wasm' : 'wasm_compat';
  try {
    importScripts(`${folder}litert_${variant}_internal.js`);
    wasm = await self.ModuleFactory({
      locateFile: (name) => folder + name, // not beside this worker
      printErr: (line) => console.debug(line), // most of them are not errors
    });
    if (!wasm.compileModel || !wasm.LiteRtTensorBuffer?.createManaged) {
      throw new Error('it is another version than the one in package-lock.json');
    }
  } catch ({ message }) {
    throw Object.assign(new Error(message), { code: 'runtime' });
  }
  wasm.setupLogging();
  environment = wasm.LiteRtEnvironment.create(null); // without a GPU
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

/** A compiled `.tflite` file. */
class Model {
  #compiled;
  #signatures = new Map(); // their numbers, and the types of their inputs and outputs by name

  /** @param {Uint8Array} bytes The file; a copy stays in the memory of the WASM. */
  static async compile(bytes) {
    const place = wasm._malloc(bytes.length);
    wasm.HEAPU8.set(bytes, place);
    const file = wasm.loadModel(environment, place, bytes.length);
    const options = { accelerator: 'wasm', cpuOptions: { numThreads: 1 } };
    return new Model(file, await wasm.compileModel(environment, file, options));
  }

  constructor(file, compiled) {
    this.#compiled = compiled;
    for (let number = 0; number < file.getNumSignatures(); number++) {
      const signature = file.getSignature(number);
      const inputs = arrayOf(signature.inputNames()).map((name, i) => [
        name,
        shapeOf(file.getInputTensorType(number, i)),
      ]);
      const outputs = arrayOf(signature.outputNames());
      this.#signatures.set(signature.key(), { number, inputs, outputs });
    }
  }

  /** The shapes of a signature's inputs, by name. */
  inputs(signature) {
    return Object.fromEntries(this.#signatures.get(signature).inputs);
  }

  /** Maps a signature's inputs, tensors by name, to its outputs. */
  async run(signature, given) {
    const { number, inputs, outputs } = this.#signatures.get(signature);
    const buffers = inputs.map(([name]) => given[name].buffer);
    const results = await this.#compiled.run(number, buffers);
    return Object.fromEntries(results.map((buffer, i) => [outputs[i], new Tensor(buffer)]));
  }
}

/** Numbers in the memory of the WASM, until `delete`. */
class Tensor {
  constructor(buffer) {
    this.buffer = buffer;
  }

  static of(numbers, shape) {
    const [element] = Object.entries(NUMBERS).find(([, Type]) => numbers instanceof Type);
    const dimensions = new wasm.VectorInt32();
    shape.forEach((size) => dimensions.push_back(size));
    const layout = wasm.LiteRtLayout.create(dimensions);
    const type = wasm.LiteRtRankedTensorType.create({ value: Number(element) }, layout);
    const { HOST_MEMORY } = wasm.LiteRtTensorBufferType;
    const size = numbers.byteLength;
    const buffer = wasm.LiteRtTensorBuffer.createManaged(environment, HOST_MEMORY, type, size);
    [dimensions, layout, type].forEach((each) => each.delete());
    const place = buffer.lock(wasm.LiteRtTensorBufferLockMode.WRITE);
    wasm.HEAPU8.set(new Uint8Array(numbers.buffer), place);
    buffer.unlock();
    return new Tensor(buffer);
  }

  get shape() {
    return shapeOf(this.buffer.tensorType());
  }

  toTypedArray() {
    const type = this.buffer.tensorType();
    const Numbers = NUMBERS[type.elementType().value];
    type.delete();
    const place = this.buffer.lock(wasm.LiteRtTensorBufferLockMode.READ);
    const octets = wasm.HEAPU8.slice(place, place + this.buffer.packedSize());
    this.buffer.unlock();
    return new Numbers(octets.buffer);
  }

  delete() {
    this.buffer.delete();
  }
}

/** The contents of a vector of the WASM, which frees it. */
function arrayOf(vector) {
  const all = Array.from({ length: vector.size() }, (_, i) => vector.get(i));
  vector.delete();
  return all;
}

/** The shape of a tensor's type, which frees the type. */
function shapeOf(type) {
  const layout = type.layout();
  const shape = arrayOf(layout.dimensions());
  layout.delete();
  type.delete();
  return shape;
}

/** Maps a sentence to its translation, in UTF-8. */
async function translate({ text }) {
  const input = textTensor(text);
  const begin = performance.now();
  const outputs = await model.run('translate', { text: input });
  const milliseconds = performance.now() - begin;
  const numbers = (name) => outputs[name]?.toTypedArray();
  const [octets, ids, [score]] = ['text', 'ids', 'score'].map(numbers);
  const [probability, known] = ['probability', 'known'].map((name) => numbers(name)?.[0]);
  const tokens = aboutTokens(...['text_ends', 'source_spans', 'confidence'].map(numbers));
  [input, ...Object.values(outputs)].forEach((tensor) => tensor.delete());
  const end = octets.findLastIndex((octet) => octet !== 0) + 1; // zeros follow the text
  const bytes = octets.slice(0, end);
  return { bytes, ids, score, probability, known, tokens, milliseconds };
}

/** A text in UTF-8, and zeros after it. */
function textTensor(text) {
  const padded = new Uint8Array(maxBytes);
  new TextEncoder().encodeInto(text, padded);
  return Tensor.of(padded, [maxBytes]);
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
