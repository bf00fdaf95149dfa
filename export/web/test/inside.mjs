/** What the modules of the page that looks inside compute of a text. */

/** Runs in the page: the weights and both translations of a text, and the times. */
export async function computed({ text, beams }) {
  const { openInside } = await import('/inside/model.js');
  const { beamSearch, continuations, ranked } = await import('/inside/search.js');
  const root = new URL('/', location.href);
  globalThis.model ??= await openInside(`${root}inside.tflite`, `${root}runtime/`);
  const { vocabulary } = model;
  const sentence = await model.encode(text);
  const { limit } = sentence;
  const next = async (ids) => (await model.step(text, ids)).logProbs;
  let ids = [];
  const settings = { endId: vocabulary.endId, limit };
  for await (const more of continuations(next, [], settings)) ids = more;
  let kept;
  const search = { ...settings, beams, lengthPenalty: 0.6 };
  for await (const each of beamSearch(next, search)) kept = each;
  const steps = await Promise.all(ids.map((_, i) => model.step(text, ids.slice(0, i))));
  const plain = (layers) => layers.map((heads) => heads.map((head) => Array.from(head)));
  return {
    ids,
    greedy: vocabulary.text(ids),
    beams: vocabulary.text(ranked(kept)[0].ids),
    encoder: plain(sentence.weights),
    self: steps.map((step) => plain(step.self)),
    cross: steps.map((step) => plain(step.cross)),
    names: sentence.tokens.map(({ name }) => name),
    encoderMilliseconds: sentence.milliseconds,
    milliseconds: steps.map((step) => step.milliseconds),
  };
}
