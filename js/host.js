// host.js - starts what the model lives in, a worker or this very thread, and calls it. Whatever ends it fails all calls
// that wait.

import { KraflaError } from './errors.js';
import { breathe, isNode, nodeModule } from './platform.js';
import { Peer } from './rpc.js';

const START_MS = 30000;

/**
 * @typedef {object} Host
 * @property {(method: string, params?: any, options?: { signal?: AbortSignal }) => Promise<any>} call
 * @property {(error: KraflaError) => void} end every call fails with it from now on, and memory is given back
 */

/**
 * @param {{ worker?: boolean, workerUrl?: string | URL, signal?: AbortSignal }} options
 * @param {{ pull: (id: number) => Promise<Uint8Array | undefined>, progress: (event: object) => void }} services
 * @returns {Promise<Host>}
 */
export function startHost({ worker = true, workerUrl, signal }, services) {
  if (!worker) return startHere(services);
  return isNode ? startNodeWorker(workerUrl, services, signal) : startPageWorker(workerUrl, services, signal);
}

// ---------------------------------------------------------------- here

async function startHere({ pull, progress }) {
  const { createService } = await import('./service.js');
  const service = createService({ pull, onProgress: progress });
  const ending = new AbortController();
  let running = 0;
  const leave = () => {
    running--;
    if (ending.signal.aborted && running === 0) service.close();
  };
  return {
    async call(method, params, { signal } = {}) {
      ending.signal.throwIfAborted();
      running++;
      const either = eitherSignal(ending.signal, signal);
      try {
        await breathe(); // as long as we are at it nothing else runs, so it may before
        either.signal.throwIfAborted();
        const value = await service[method](params, { signal: either.signal });
        either.signal.throwIfAborted();
        return value;
      } finally {
        either.forget();
        leave();
      }
    },
    end(error) {
      if (ending.signal.aborted) return;
      running++;
      ending.abort(error);
      leave();
    },
  };
}

/** Aborted as soon as one of the two is. (Older browsers have no AbortSignal.any.) */
function eitherSignal(...signals) {
  const controller = new AbortController();
  const listeners = signals.filter(Boolean).map((signal) => {
    const onAbort = () => controller.abort(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort);
    return () => signal.removeEventListener('abort', onAbort);
  });
  return { signal: controller.signal, forget: () => listeners.forEach((forget) => forget()) };
}

// ---------------------------------------------------------------- a worker

/** Waits for its first message, and takes care that nothing waits for a worker that is dead. */
function connect({ send, terminate, onBusy, services, signal }) {
  return new Promise((resolve, reject) => {
    const fail = (error) => {
      settled();
      peer.end(error);
      terminate();
      reject(error);
    };
    const onAbort = () => fail(signal.reason);
    const late = () => fail(new KraflaError('KRAFLA_E_WORKER', `the worker did not start in ${START_MS / 1000} s`));
    const timer = setTimeout(late, START_MS);
    const settled = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    const ready = () => {
      settled();
      resolve({ call: (...parameters) => peer.call(...parameters), end: fail });
    };
    const peer = new Peer({ send }, { ...services, ready }, onBusy);
    signal?.addEventListener('abort', onAbort);
    services.onPeer(peer, fail);
  });
}

const died = (why) => new KraflaError('KRAFLA_E_WORKER', `the worker died: ${why}`);

function startNodeWorker(workerUrl, services, signal) {
  const { Worker: NodeWorker } = nodeModule('worker_threads');
  const options = { execArgv: [] }; // some of the program's own, as --input-type, are not for workers
  const worker = workerUrl
    ? new NodeWorker(new URL(workerUrl), options)
    : new NodeWorker(new URL('./worker.js', import.meta.url), options);
  const onPeer = (peer, fail) => {
    worker.on('message', (message) => peer.receive(message));
    worker.on('messageerror', (error) => fail(died(error.message)));
    worker.on('error', (error) => fail(died(error.message)));
    worker.on('exit', (code) => fail(died(`exit code ${code}`)));
  };
  return connect({
    send: (message, transfer) => worker.postMessage(message, transfer),
    terminate: () => void worker.terminate(),
    // A program waits for what it has asked for, and for nothing else.
    onBusy: (busy) => (busy ? worker.ref() : worker.unref()),
    services: { ...services, onPeer },
    signal,
  }).then((host) => {
    worker.unref();
    return host;
  });
}

async function startPageWorker(workerUrl, services, signal) {
  const worker = makePageWorker(workerUrl);
  const watching = new AbortController();
  const host = await connect({
    send: (message, transfer) => worker.postMessage(message, transfer),
    terminate: () => {
      watching.abort();
      worker.terminate();
    },
    services: {
      ...services,
      onPeer(peer, fail) {
        worker.onmessage = ({ data }) => peer.receive(data);
        worker.onmessageerror = () => fail(died('a message could not be read'));
        worker.onerror = (event) => fail(died(event.message || `${workerUrl ?? 'worker.js'} cannot be loaded`));
      },
    },
    signal,
  });
  await watch(host, watching.signal, signal);
  return host;
}

/** A page is not told when a worker dies. But the worker holds a lock, and when the page gets it the worker is gone. */
async function watch(host, closed, signal) {
  const { locks } = globalThis.navigator ?? {};
  if (!locks) return;
  const name = `krafla-${globalThis.crypto.getRandomValues(new Uint32Array(4)).join('-')}`;
  await host.call('hold', name, { signal });
  const onDeath = () => host.end(died('it is gone, perhaps for want of memory'));
  locks.request(name, { signal: closed }, onDeath).catch(() => {}); // it was closed
}

function makePageWorker(workerUrl) {
  try {
    if (workerUrl) return new Worker(new URL(workerUrl, globalThis.document?.baseURI), { type: 'module' });
    return new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
  } catch (error) {
    const why = `the worker cannot be started: ${error.message}; see the option workerUrl`;
    throw new KraflaError('KRAFLA_E_WORKER', why, { cause: error });
  }
}
