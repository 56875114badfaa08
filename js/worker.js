// worker.js - the thread that the model lives in. It only passes messages: to the service, and back.

import { isNode, nodeModule } from './platform.js';
import { Peer } from './rpc.js';
import { createService } from './service.js';

const port = isNode ? nodeModule('worker_threads').parentPort : self;
const pull = (id) => peer.call('pull', id);
const onProgress = (event) => peer.tell('progress', event);

/** The page waits for a lock that this worker holds until it dies. */
const hold = (name) =>
  new Promise((resolve, reject) => {
    const untilTheEnd = () => {
      resolve();
      return new Promise(() => {});
    };
    navigator.locks.request(name, untilTheEnd).catch(reject);
  });

const services = { ...createService({ pull, onProgress }), hold };
const peer = new Peer({ send: (message, transfer) => port.postMessage(message, transfer) }, services);

if (isNode) port.on('message', (message) => peer.receive(message));
else port.onmessage = ({ data }) => peer.receive(data);
peer.tell('ready');
