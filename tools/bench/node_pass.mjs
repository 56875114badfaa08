// A pass of krafla_pass.mjs in Node: prints its answer as JSON.
import fs from 'node:fs';
import { pass } from './krafla_pass.mjs';

const answer = await pass(JSON.parse(process.argv[2]));
const peak = 1024 * Number(/^VmHWM:\s+(\d+)/m.exec(fs.readFileSync('/proc/self/status', 'latin1'))[1]);
fs.writeSync(1, `${JSON.stringify({ ...answer, peak })}\n`);
