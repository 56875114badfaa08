// download.js - bytes of a URL in order, whatever happens on the way: a download that is cut or stands still is taken up
// where it ended, if the server still has the same file.

import { KraflaError } from './errors.js';

const TIMEOUT_MS = 30000; // without a byte
const RETRIES = 3; // in a row that bring nothing
const WAIT_MS = 500; // before the first of them, twice as long before each further one

/**
 * The file's bytes as they come, each chunk a Uint8Array.
 * @param {string} url
 * @param {{ size?: number, timeout?: number, retries?: number, signal?: AbortSignal, onSize?: (size: number) => void }}
 *   [options] size: what the file must have; onSize: told what the server says, where it is known otherwise
 */
export async function* download(url, { size, timeout = TIMEOUT_MS, retries = RETRIES, signal, onSize } = {}) {
  const state = { url, size, timeout, signal, at: 0, tag: undefined };
  let failures = 0;
  for (;;) {
    const before = state.at;
    try {
      for await (const chunk of attempt(state, onSize)) yield chunk;
      if (state.size === undefined || state.at === state.size) return;
      throw cut(state);
    } catch (error) {
      signal?.throwIfAborted();
      if (!canResume(error, state)) throw error;
      failures = state.at > before ? 1 : failures + 1;
      if (failures > retries) throw error;
      await pause(WAIT_MS * 2 ** (failures - 1), signal);
    }
  }
}

/** Its first bytes, at least `n` of them if the file has as many, and no further. */
export async function downloadHead(url, n, options) {
  let size;
  const state = { ...options, url, at: 0, size: undefined, tag: undefined, timeout: options.timeout ?? TIMEOUT_MS };
  const bytes = await firstBytes(
    attempt(state, (known) => (size = known), n),
    n,
  );
  return { bytes, size };
}

/** The first `n` bytes, or all there are. @param {AsyncIterable<Uint8Array>} chunks */
export async function firstBytes(chunks, n) {
  const parts = [];
  let length = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    length += chunk.length;
    if (length >= n) break;
  }
  return joined(parts);
}

export function joined(chunks) {
  const all = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

function canResume(error, { at }) {
  if (error.code === 'KRAFLA_E_CUT' || error.code === 'KRAFLA_E_STALLED') return true;
  return at > 0 && (error.code === 'KRAFLA_E_NETWORK' || (error.code === 'KRAFLA_E_HTTP' && error.status >= 500));
}

const cut = ({ url, at, size }) =>
  new KraflaError('KRAFLA_E_CUT', `${url}: the download ended after ${at} of ${size ?? 'unknown'} bytes`, {
    url,
    expected: size,
    actual: at,
  });

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** One request, from where the last one ended; `limit`: no more than the first bytes are needed. */
async function* attempt(state, onSize, limit) {
  const watch = new Watch(state);
  try {
    const response = await request(state, watch, limit);
    let skip = checkAnswer(response, state, onSize, limit);
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await watch.over(reader.read());
      if (done) break;
      const chunk = value.subarray(Math.min(skip, value.length));
      skip -= value.length - chunk.length;
      if (chunk.length === 0) continue;
      state.at += chunk.length;
      if (state.size !== undefined && state.at > state.size) throw wrongLength(state, state.at, 'or more');
      yield chunk;
    }
  } finally {
    watch.end();
  }
}

/** Range is the one header that may be sent to other origins without asking first; what came is judged by its ETag. */
async function request(state, watch, limit) {
  const headers = {};
  if (state.at > 0) headers.Range = `bytes=${state.at}-`;
  else if (limit) headers.Range = `bytes=0-${limit - 1}`;
  return watch.over(fetch(state.url, { headers, signal: watch.signal }));
}

/** How many of the answer's bytes are known already. Throws if it is not an answer to what was asked. */
function checkAnswer(response, state, onSize, limit) {
  checkKind(response, state);
  const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(response.headers.get('content-range') ?? '');
  // Other origins need not let a page see where a part begins: then it is where it was asked for.
  const start = response.status !== 206 ? 0 : range ? Number(range[1]) : state.at;
  checkSame(response, state, start);
  const total = totalSize(response, range);
  if (total === undefined) return state.at - start;
  if (!limit) {
    if (state.size !== undefined && total !== state.size) throw wrongLength(state, total);
    state.size = total;
  }
  onSize?.(total);
  return state.at - start;
}

function checkKind(response, { url }) {
  const { ok, status, statusText, headers } = response;
  if (!ok) {
    const message = `${url}: the server answers ${status} ${statusText}`.trim();
    throw new KraflaError('KRAFLA_E_HTTP', message, { url, status });
  }
  if (/^text\/html/i.test(headers.get('content-type') ?? '')) {
    const message = `${url}: a web page came instead of the file; is the address right?`;
    throw new KraflaError('KRAFLA_E_CONTENT', message, { url });
  }
}

/** What goes on must be the same file, and go on where it ended or before. */
function checkSame(response, state, start) {
  const tag = response.headers.get('etag') ?? undefined;
  const changed = state.at > 0 && state.tag !== undefined && tag !== undefined && tag !== state.tag;
  if (changed || start > state.at) {
    const { url } = state;
    throw new KraflaError('KRAFLA_E_LENGTH', `${url}: the file changed while it was loaded`, { url });
  }
  state.tag ??= tag;
}

/** Of the whole file. A length says nothing if what is on the wire is compressed. */
function totalSize(response, range) {
  if (response.status === 206) return range && range[2] !== '*' ? Number(range[2]) : undefined;
  const encoding = response.headers.get('content-encoding');
  const length = response.headers.get('content-length');
  return length !== null && (encoding === null || encoding === 'identity') ? Number(length) : undefined;
}

const wrongLength = ({ url, size }, actual, suffix = '') =>
  new KraflaError('KRAFLA_E_LENGTH', `${url}: ${actual} bytes${suffix && ` ${suffix}`}, must be ${size}`, {
    url,
    expected: size,
    actual,
  });

/** Ends a request that the caller gives up, or in which nothing happens for too long. */
class Watch {
  #state;
  #controller = new AbortController();
  #onAbort = () => this.#controller.abort();

  constructor(state) {
    this.#state = state;
    state.signal?.addEventListener('abort', this.#onAbort);
  }

  get signal() {
    return this.#controller.signal;
  }

  async over(promise) {
    const { url, timeout, at, signal } = this.#state;
    let timer;
    const stalled = new KraflaError(
      'KRAFLA_E_STALLED',
      `${url}: nothing came for ${timeout / 1000} s, after ${at} bytes`,
      { url },
    );
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(stalled), timeout);
    });
    try {
      return await Promise.race([promise, late]);
    } catch (error) {
      signal?.throwIfAborted();
      if (error === stalled) throw error;
      const why =
        at > 0
          ? 'the connection broke'
          : 'no answer: no network, no such server, or one that does not allow other origins (CORS)';
      throw new KraflaError(at > 0 ? 'KRAFLA_E_CUT' : 'KRAFLA_E_NETWORK', `${url}: ${why}`, {
        url,
        expected: this.#state.size,
        actual: at,
        cause: error,
      });
    } finally {
      clearTimeout(timer);
    }
  }

  end() {
    this.#state.signal?.removeEventListener('abort', this.#onAbort);
    this.#controller.abort();
  }
}
