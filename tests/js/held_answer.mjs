// For `node --import`, in front of a program that generates in a worker: the answer comes to a halt after its first tokens.
// HOLD=until-interrupted: it goes on at the first Ctrl-C; HOLD=for-ever: it does not. Tells on standard error when it is
// `held`, and when a Ctrl-C was `heard`.
import { Worker } from 'node:worker_threads';

const FREE_STEPS = 5;
const { postMessage } = Worker.prototype;
let steps = 0;
let release = () => {};

Worker.prototype.postMessage = function (message, transfer) {
  if (message.method !== 'step' || ++steps !== FREE_STEPS) return postMessage.call(this, message, transfer);
  release = () => postMessage.call(this, message, transfer);
  process.stderr.write('held\n');
};

process.on('SIGINT', () => {
  process.stderr.write('heard\n');
  if (process.env.HOLD === 'until-interrupted') release();
});
