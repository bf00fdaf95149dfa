/** Loops that never freeze the page, and the signals that end them. */

const LONGEST = 8; // milliseconds without a chance to paint; a frame takes 16

/** A signal that is aborted with the first of some, also in Safari before 17.4. */
export function anyOf(signals) {
  if (AbortSignal.any) return AbortSignal.any(signals);
  const controller = new AbortController();
  for (const signal of signals) {
    const abort = () => controller.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
  }
  return controller.signal;
}

/**
 * A function to await in each turn of a loop: every few milliseconds it lets the page paint
 * and its timers run.
 *
 * @param {AbortSignal} [signal]
 * @returns {function(): Promise<void>} Rejects with the signal's reason once it is aborted.
 */
export function pacer(signal) {
  let begin = performance.now();
  return async () => {
    signal?.throwIfAborted();
    if (performance.now() - begin < LONGEST) return;
    await nextTask();
    begin = performance.now();
    signal?.throwIfAborted();
  };
}

/** A timer would wait longer: 4 ms each time, and a second in a tab that is not shown. */
async function nextTask() {
  const { port1, port2 } = new MessageChannel();
  await new Promise((done) => {
    port1.onmessage = done;
    port2.postMessage(null);
  });
  port1.close();
}
