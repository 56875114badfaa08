// For `node --import`, in front of a program that generates in a worker: the answer comes to a halt at its first step.
// HOLD=until-interrupted: it goes on at the first Ctrl-C; HOLD=for-ever: it does not. Tells on standard error when it is
// `held`, and when a Ctrl-C was `heard`.
import { Worker } from 'node:worker_threads';

const { postMessage } = Worker.prototype;
let isHeld = false;
let release = () => {};

Worker.prototype.postMessage = function (message, transfer) {
  if (message.method !== 'step' || isHeld) return postMessage.call(this, message, transfer);
  isHeld = true;
  release = () => postMessage.call(this, message, transfer);
  process.stderr.write('held\n');
};

process.on('SIGINT', () => {
  process.stderr.write('heard\n');
  if (process.env.HOLD === 'until-interrupted') release();
});
