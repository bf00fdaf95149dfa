/** Sentences that wait for a worker, which translates one after the other. */

import { requireChecksum } from './description.js';
import { TranslatorError } from './errors.js';
import { progress } from './fetched.js';
import { pacer } from './pace.js';

const REMEMBERED = 5000; // sentences, so that while one types only what is new is computed

/**
 * Starts a worker with a model; the runtime loads while the model arrives.
 *
 * @param {Promise<Uint8Array>|Uint8Array} file A file with a description. Its memory goes to the
 *     worker.
 * @param {function(Uint8Array): Object} read What becomes the description, or refuses the file.
 * @param {function(): Worker} start Starts worker.js, or one that answers more, in a thread.
 * @param {string} runtime The URL of npm's folder `@litertjs`, with a slash at its end.
 * @param {import('./translate.js').LoadOptions} [options] `signal` and `onProgress`.
 * @returns {Promise<{queue: SentenceQueue, description: Object, maxBytes: number}>}
 * @throws {TranslatorError} "damaged" or "runtime", or of `read`; or what `file` rejects with, or
 *     the signal's reason.
 */
export async function openWorker(file, read, start, runtime, { signal, onProgress } = {}) {
  Promise.resolve(file).catch(() => {}); // where something else fails before
  let queue;
  let arrival; // of the runtime, which is told after all of the model has arrived
  let isHere = false;
  const tell = () => isHere && arrival && onProgress?.(arrival);
  const onArrival = ({ received, stated }) => {
    arrival = progress('runtime', received, stated);
    tell();
  };
  try {
    queue = new SentenceQueue(started(start));
    const loaded = queue.request({ runtime }, { signal, onArrival });
    loaded.catch(() => {}); // it is awaited below
    const bytes = await file;
    const description = read(bytes);
    await requireChecksum(bytes);
    isHere = true;
    tell();
    const answer = loaded.then(() =>
      queue.request({ model: bytes }, { signal, transfer: [bytes.buffer] }),
    );
    const { maxBytes } = await answer.catch((error) => {
      throw queue.ended ? noWorker(error) : loadingError(error, runtime);
    });
    return { queue, description, maxBytes };
  } catch (error) {
    queue?.close();
    signal?.throwIfAborted();
    throw error;
  }
}

function started(start) {
  try {
    return start();
  } catch (error) {
    throw noWorker(error); // of another origin, for example
  }
}

function noWorker({ message }) {
  const sentence = `The worker did not start: its file is missing, or the network (${message}).`;
  return new TranslatorError('runtime', sentence);
}

function loadingError({ code, message }, runtime) {
  if (code === 'runtime') {
    return new TranslatorError(code, `LiteRT.js did not load from ${runtime} (${message}).`);
  }
  return new TranslatorError(
    'damaged',
    `The file is damaged, or LiteRT.js cannot run it (${message}).`,
  );
}

/**
 * Answers requests in their order, until its worker ends.
 *
 * The next request begins when the last one is answered; one whose signal is aborted before
 * never begins. One that has begun cannot be stopped: its result is remembered.
 */
export class SentenceQueue {
  #worker;
  #waiting = new Set();
  #running;
  #results = new Map(); // of the last sentences, the oldest first
  #ended; // why no request is answered any more
  #pace = pacer(); // of what is remembered

  constructor(worker) {
    this.#worker = worker;
    worker.onmessage = ({ data }) => this.#answer(data);
    worker.onerror = (event) =>
      this.#end(new TranslatorError('failed', event.message ?? 'it cannot be loaded'));
  }

  /** Why no request is answered any more, or undefined. */
  get ended() {
    return this.#ended;
  }

  /**
   * @param {Object} message As worker.js takes it; a sentence in `text`.
   * @param {{signal?: AbortSignal, transfer?: Transferable[], onArrival?: function(Object)}}
   *     options `onArrival` is called when more of the runtime has arrived.
   * @returns {Promise<Object>} What worker.js gives.
   */
  async request(message, { signal, transfer = [], onArrival }) {
    if (this.#ended) throw this.#ended;
    signal?.throwIfAborted();
    const request = { message, transfer, onArrival };
    const answer = new Promise((...settle) => ([request.resolve, request.reject] = settle));
    const abort = () => this.#drop(request, signal.reason);
    signal?.addEventListener('abort', abort);
    this.#waiting.add(request);
    this.#next();
    return answer.finally(() => signal?.removeEventListener('abort', abort));
  }

  close() {
    this.#end(new TranslatorError('closed', 'The translator was closed.'));
  }

  #drop(request, reason) {
    this.#waiting.delete(request);
    request.reject(reason);
  }

  async #next() {
    while (!this.#running && this.#waiting.size > 0) {
      const [request] = this.#waiting;
      this.#waiting.delete(request);
      this.#running = request;
      const { text } = request.message;
      const result = this.#results.get(text);
      if (!result) return this.#worker.postMessage(request.message, request.transfer);
      await this.#pace();
      this.#running = undefined;
      this.#remember(text, result);
      request.resolve(result);
    }
  }

  #answer({ result, error, arrival }) {
    if (arrival) return this.#running?.onArrival?.(arrival);
    const { message, resolve, reject } = this.#running;
    this.#running = undefined;
    if (error) reject(new TranslatorError(error.code, error.message));
    else resolve(result);
    if (result && message.text !== undefined) this.#remember(message.text, result);
    this.#next();
  }

  #remember(text, result) {
    this.#results.delete(text); // the newest is the last
    this.#results.set(text, result);
    const [oldest] = this.#results.keys();
    if (this.#results.size > REMEMBERED) this.#results.delete(oldest);
  }

  #end(error) {
    this.#ended ??= error;
    this.#worker.terminate();
    const pending = [this.#running, ...this.#waiting].filter(Boolean);
    this.#waiting.clear();
    for (const { reject } of pending) reject(this.#ended);
  }
}
