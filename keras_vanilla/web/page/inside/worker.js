/**
 * Runs a file of the form “inside”: its encoder, and its decoder one step at a time.
 *
 * A step needs what the steps before it have computed, so the last states are kept: those
 * of other beams, and of the sentence with a word less, are often asked for again.
 */

importScripts('../worker.js'); // LiteRT.js: `answers`, `compile`, `model`, `Tensor`

const KEPT = 48; // of each; in a small model one takes 1 to 3 MB
const sources = new Map(); // text -> the tensors that `encode` gives
const states = new Map(); // text and ids -> the tensors that `decode_step` gives

Object.assign(answers, { model: open, source: encode, ids: step });

async function open(request) {
  await compile(request);
  maxBytes = model.inputs('encode').text[0];
  await step({ ids: [0], source: '' }); // the first run is slow
  return { maxBytes };
}

/** The pieces of a text, and the weights of the encoder's attention. */
async function encode({ source }) {
  const clock = clockOf(sources, source);
  const tensors = await encoded(source);
  const milliseconds = clock();
  const [count] = tensors.count.toTypedArray();
  const all = tensors.source_ids.toTypedArray();
  const size = Math.min(count, all.length); // more do not fit
  const ids = all.slice(0, size);
  const spans = tensors.source_spans.toTypedArray().slice(0, 2 * size);
  const weights = weightsOf(tensors, /^encoder_\d+$/, size, size);
  return { count, ids, spans, weights, milliseconds };
}

/** What follows ids: the logits, and the weights with which the last id attended. */
async function step({ ids, source }) {
  const clock = clockOf(states, [source, ...ids].join('\0'));
  const tensors = await stateAfter(source, ids);
  const milliseconds = clock();
  const [count] = (await encoded(source)).count.toTypedArray();
  return {
    logits: tensors.logits.toTypedArray().slice(),
    self: weightsOf(tensors, /^decoder_\d+_self$/, 1, ids.length),
    cross: weightsOf(tensors, /^decoder_\d+_cross$/, 1, count),
    milliseconds,
  };
}

function encoded(source) {
  return remembered(sources, source, async () => {
    const text = textTensor(source);
    const tensors = await model.run('encode', { text });
    text.delete();
    return tensors;
  });
}

/** What `decode_step` gives of the last of some ids. */
async function stateAfter(source, ids) {
  return remembered(states, [source, ...ids].join('\0'), async () => {
    const past = { ...(await encoded(source)) };
    if (ids.length > 1) Object.assign(past, await stateAfter(source, ids.slice(0, -1)));
    const { known, made } = stepInputs(past, ids);
    const tensors = await model.run('decode_step', { ...known, ...made });
    Object.values(made).forEach((tensor) => tensor.delete());
    return tensors;
  });
}

/** The inputs of a step: those that are known already, and those made for it. */
function stepInputs(past, ids) {
  const known = {};
  const made = {
    ids: Tensor.of(Int32Array.of(ids.at(-1)), [1]),
    index: Tensor.of(Int32Array.of(ids.length - 1), []),
  };
  for (const [name, shape] of Object.entries(model.inputs('decode_step'))) {
    if (name in past) known[name] = past[name];
    else made[name] ??= zeros(shape);
  }
  return { known, made };
}

function zeros(shape) {
  const size = shape.reduce((product, length) => product * length, 1);
  return Tensor.of(new Float32Array(size), shape);
}

/** A function of the milliseconds since now, or null where nothing has to be computed. */
function clockOf(map, key) {
  const begin = map.has(key) ? NaN : performance.now();
  return () => (Number.isNaN(begin) ? null : performance.now() - begin);
}

/** The tensors that a map has of a key, or else those that `compute` gives. */
async function remembered(map, key, compute) {
  const tensors = map.get(key) ?? (await compute());
  map.delete(key); // the newest is the last
  map.set(key, tensors);
  if (map.size > KEPT) {
    const [[oldest, forgotten]] = map;
    map.delete(oldest);
    Object.values(forgotten).forEach((tensor) => tensor.delete());
  }
  return tensors;
}

/**
 * The weights of each layer, without those of pads.
 *
 * @returns {Float32Array[][]} Per layer and head, `rows` times `columns` weights.
 */
function weightsOf(tensors, names, rows, columns) {
  const found = Object.keys(tensors).filter((name) => names.test(name)).sort(inNumbers);
  return found.map((name) => {
    const [, heads, , width] = tensors[name].shape;
    const all = tensors[name].toTypedArray();
    const height = all.length / (heads * width);
    return Array.from({ length: heads }, (_, head) => {
      const values = new Float32Array(rows * columns);
      for (let row = 0; row < rows; row++) {
        const begin = (head * height + row) * width;
        values.set(all.subarray(begin, begin + columns), row * columns);
      }
      return values;
    });
  });
}

/** The order of decoder_2 and decoder_10. */
function inNumbers(one, other) {
  return one.localeCompare(other, 'en', { numeric: true });
}
