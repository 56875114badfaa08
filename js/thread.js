// thread.js - a worker that lends itself to an engine as one of its threads (src/base/thread_wasm.c), until it is
// terminated. A worker of a page is told what to do by a message, one of Node by its workerData.

import { importsFor } from './heap.js';
import { isNode, nodeModule } from './platform.js';

function lend({ module, memory, stack, stackBytes }, reply) {
  try {
    const { exports } = new WebAssembly.Instance(module, importsFor(memory));
    exports._emscripten_wasm_worker_initialize(stack, stackBytes);
    reply('ready');
    exports.ml_thread_lend();
  } catch (error) {
    reply(String(error));
  }
}

if (isNode) {
  const { parentPort, workerData } = nodeModule('worker_threads');
  lend(workerData, (message) => parentPort.postMessage(message));
} else {
  self.onmessage = ({ data }) => lend(data, (message) => self.postMessage(message));
}
