// platform.js - what Node has and pages have not. Its modules are asked for by name at run time, so that bundlers for
// pages see no import of them.

const getBuiltin = globalThis.process?.versions?.node ? globalThis.process.getBuiltinModule : undefined;

/** In Node 20.16 and later, and in what is like it. */
export const isNode = getBuiltin !== undefined;

/** @param {string} name as in `node:name` */
export const nodeModule = (name) => getBuiltin(`node:${name}`);

/** How many threads the machine runs at once. */
export function processors() {
  if (isNode) return nodeModule('os').availableParallelism();
  return globalThis.navigator?.hardwareConcurrency || 1;
}

/** Lets whatever else waits in this thread go first: timers, messages, input. */
export const breathe = isNode
  ? () => new Promise((resolve) => globalThis.setImmediate(resolve))
  : () =>
      new Promise((resolve) => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => {
          port1.close();
          resolve();
        };
        port2.postMessage(0);
      });
