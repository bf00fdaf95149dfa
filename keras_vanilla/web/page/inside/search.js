/**
 * Searches, one step at a time, with the rules of `keras_vanilla.decoding`.
 *
 * Each takes a function `next`: ids -> the log-probabilities of the id that follows them.
 */

/**
 * A hypothesis of a search.
 *
 * @typedef {Object} Hypothesis
 * @property {number[]} ids Without the start.
 * @property {number} logProb
 * @property {boolean} finished Whether it has its end, or its longest length.
 * @property {number} score The log-probability over the length penalty.
 */

/**
 * Beam search: yields the hypotheses that are kept, after each step.
 *
 * One that ends keeps its place, and the search goes on with a beam fewer, until no beam can
 * still enter the list of those that have ended.
 *
 * @param {function(number[]): Promise<Float32Array>} next
 * @param {{beams: number, lengthPenalty: number, endId: number, limit: number}} settings
 *     `limit`: the longest output in tokens, the end included.
 * @yields {Hypothesis[]} At most `beams`.
 */
export async function* beamSearch(next, { beams, lengthPenalty, endId, limit }) {
  const score = (logProb, length) => logProb / ((5 + length) / 6) ** lengthPenalty;
  let kept = [{ ids: [], logProb: 0, finished: false, score: 0 }];
  const canImprove = () => {
    const ended = kept.filter(({ finished }) => finished).map((each) => each.score);
    const worst = ended.length < beams ? -Infinity : Math.min(...ended);
    return kept.some(({ finished, logProb }) => !finished && score(logProb, limit) > worst);
  };
  for (let length = 1; length <= limit && canImprove(); length++) {
    const candidates = [];
    for (const hypothesis of kept) {
      if (hypothesis.finished) continue;
      const logProbs = await next(hypothesis.ids);
      for (const id of best(logProbs, beams)) {
        const logProb = hypothesis.logProb + logProbs[id];
        const finished = id === endId || length === limit;
        const ids = [...hypothesis.ids, id];
        candidates.push({ ids, logProb, finished, score: score(logProb, length) });
      }
    }
    candidates.sort((one, other) => other.logProb - one.logProb);
    const ended = kept.filter(({ finished }) => finished);
    kept = [...ended, ...candidates].slice(0, beams);
    yield kept;
  }
}

/** Finished hypotheses, best first. */
export function ranked(kept) {
  const finished = kept.filter((each) => each.finished);
  return finished.sort((one, other) => other.score - one.score);
}

/**
 * Continues ids to their end: yields them after each step.
 *
 * @param {function(number[]): Promise<Float32Array>} next
 * @param {number[]} ids Without the start.
 * @param {{endId: number, limit: number, choose?: function(Float64Array, number[]): number}}
 *     settings `choose`: takes an id of its log-probabilities and the ids before it; the most
 *     probable one without it.
 * @yields {number[]}
 */
export async function* continuations(next, ids, { endId, limit, choose = mostProbable }) {
  let all = ids;
  while (all.at(-1) !== endId && all.length < limit) {
    all = [...all, choose(await next(all), all)];
    yield all;
  }
}

/** The `count` most probable ids, the most probable first; of equal ones the lowest. */
export function best(logProbs, count) {
  const found = [];
  logProbs.forEach((logProb, id) => {
    if (found.length === count && logProb <= logProbs[found.at(-1)]) return;
    const place = found.findIndex((other) => logProbs[other] < logProb);
    found.splice(place < 0 ? found.length : place, 0, id);
    if (found.length > count) found.pop();
  });
  return found;
}

/** The most probable id; of equal ones the lowest. */
export function mostProbable(logProbs) {
  return best(logProbs, 1)[0];
}

/** Log-probabilities of logits over a temperature. */
export function logSoftmax(logits, temperature = 1) {
  const largest = logits.reduce((most, logit) => Math.max(most, logit), -Infinity);
  const shifted = Float64Array.from(logits, (logit) => (logit - largest) / temperature);
  const sum = shifted.reduce((total, each) => total + Math.exp(each), 0);
  return shifted.map((each) => each - Math.log(sum));
}

/**
 * Log-probabilities among the most probable ids, those that reach `topP` together; the
 * others become impossible.
 */
export function nucleus(logProbs, topP) {
  const kept = logProbs.slice().fill(-Infinity);
  const order = [...logProbs.keys()].sort((one, other) => logProbs[other] - logProbs[one]);
  let sum = 0;
  for (const id of order) {
    if (sum >= topP) break;
    kept[id] = logProbs[id];
    sum += Math.exp(logProbs[id]);
  }
  return logSoftmax(kept);
}

/** Draws an id by its probability; `random` is a number from 0 to 1, without 1. */
export function drawn(logProbs, random) {
  let rest = random;
  let last = 0;
  for (const [id, logProb] of logProbs.entries()) {
    if (logProb === -Infinity) continue;
    last = id; // where rounding leaves a rest
    rest -= Math.exp(logProb);
    if (rest < 0) return id;
  }
  return last;
}
