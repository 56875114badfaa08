// rpc.js - calls across a message port, both ways. A call is answered once, or fails once: with the other side's error,
// or with what ended the connection. Nothing waits for ever.
//
//   { call: 7, method, params }    { reply: 7, value }    { reply: 7, error }    { cancel: 7 }    { tell: method, params }

import { packError, unpackError } from './errors.js';

export class Peer {
  #port;
  #services;
  #pending = new Map(); // number of a call -> how to settle it
  #serving = new Map(); // number of a call of the other side -> its AbortController
  #lastCall = 0;
  #end;
  #onBusy;

  /**
   * @param {{ send: (message: object, transfer?: Transferable[]) => void }} port what arrives is to be given to receive()
   * @param {Record<string, (params: any, context: { signal: AbortSignal }) => any>} services what the other side may call
   * @param {(busy: boolean) => void} [onBusy] told when the first call begins to wait, and when the last has ended
   */
  constructor(port, services, onBusy) {
    this.#port = port;
    this.#services = services;
    this.#onBusy = onBusy;
  }

  /**
   * @param {string} method
   * @param {any} [params]
   * @param {{ signal?: AbortSignal, transfer?: Transferable[] }} [options] signal: rejects at once with its reason, and
   *   tells the other side
   */
  call(method, params, { signal, transfer } = {}) {
    if (this.#end) return Promise.reject(this.#end);
    if (signal?.aborted) return Promise.reject(signal.reason);
    const call = ++this.#lastCall;
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#send({ cancel: call });
        this.#settle(call)?.reject(signal.reason);
      };
      signal?.addEventListener('abort', onAbort);
      const settled = () => signal?.removeEventListener('abort', onAbort);
      this.#pending.set(call, { resolve, reject, settled });
      if (this.#pending.size === 1) this.#onBusy?.(true);
      try {
        this.#port.send({ call, method, params }, transfer);
      } catch (error) {
        this.#settle(call)?.reject(error); // something in it cannot be sent
      }
    });
  }

  /** Without an answer. */
  tell(method, params) {
    if (!this.#end) this.#send({ tell: method, params });
  }

  /** Every call, waiting or to come, fails with `error`. */
  end(error) {
    if (this.#end) return;
    this.#end = error;
    for (const call of [...this.#pending.keys()]) this.#settle(call)?.reject(error);
    for (const controller of this.#serving.values()) controller.abort(error);
  }

  receive(message) {
    if (message.reply !== undefined) {
      const waiting = this.#settle(message.reply);
      if (message.error) waiting?.reject(unpackError(message.error));
      else waiting?.resolve(message.value);
    } else if (message.cancel !== undefined) {
      this.#serving.get(message.cancel)?.abort();
    } else if (message.tell !== undefined) {
      this.#services[message.tell]?.(message.params, {});
    } else if (message.call !== undefined) {
      this.#serve(message);
    }
  }

  #send(message) {
    try {
      this.#port.send(message);
    } catch {
      // The port is gone: whoever noticed has ended this peer, or will.
    }
  }

  #settle(call) {
    const waiting = this.#pending.get(call);
    if (!waiting) return undefined; // cancelled before
    this.#pending.delete(call);
    waiting.settled();
    if (this.#pending.size === 0) this.#onBusy?.(false);
    return waiting;
  }

  async #serve({ call, method, params }) {
    const controller = new AbortController();
    this.#serving.set(call, controller);
    try {
      const value = await this.#services[method](params, { signal: controller.signal });
      const transfer = value instanceof Uint8Array ? [value.buffer] : undefined;
      this.#port.send({ reply: call, value }, transfer);
    } catch (error) {
      this.#send({ reply: call, error: packError(error) });
    } finally {
      this.#serving.delete(call);
    }
  }
}
