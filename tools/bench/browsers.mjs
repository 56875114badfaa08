// Debian's Chromium and Firefox, a new one for each pass, so that its peak memory is that pass's.
import fs from 'node:fs';

const MINUTES = 60_000;
// What a machine needs that runs as root, has no screen, and whose network ends at its own door.
export const CHROMIUM_ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const BROWSERS = {
  chromium: {
    browser: 'chrome',
    programs: ['chromium', 'chromium-browser', 'google-chrome'],
    args: CHROMIUM_ARGUMENTS,
  },
  firefox: { browser: 'firefox', programs: ['firefox-esr', 'firefox'], args: [] },
};

function findProgram(programs) {
  for (const folder of process.env.PATH.split(':'))
    for (const program of programs) if (fs.existsSync(`${folder}/${program}`)) return `${folder}/${program}`;
  throw new Error(`${programs[0]} is not installed`);
}

/** Bytes that the largest of a browser's processes for pages has had at most. */
function peakOfPages(rootPid) {
  const parents = new Map();
  const peaks = new Map();
  for (const name of fs.readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const status = fs.readFileSync(`/proc/${name}/status`, 'latin1');
      parents.set(Number(name), Number(/^PPid:\s+(\d+)/m.exec(status)[1]));
      const command = fs.readFileSync(`/proc/${name}/cmdline`, 'latin1');
      const forPages = /--type=renderer|-isForBrowser/.test(command); // Chromium's, Firefox's
      if (forPages) peaks.set(Number(name), 1024 * Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1] ?? 0));
    } catch {
      // it has ended meanwhile
    }
  }
  const belongs = (pid) => pid === rootPid || (pid > 1 && parents.has(pid) && belongs(parents.get(pid)));
  const ours = [...peaks].filter(([pid]) => belongs(pid)).map(([, bytes]) => bytes);
  return ours.length ? Math.max(...ours) : undefined;
}

/**
 * Opens an empty page of our server in a new browser and runs a pass there.
 * @param {'chromium' | 'firefox'} name
 * @param {string} base the server's address
 * @param {{ module: string, worker: boolean, task: object }} what module of tools/bench that exports `pass`
 */
export async function runInBrowser(name, base, { module, worker, task }) {
  const { default: puppeteer } = await import('puppeteer-core'); // only now: without it, other subjects still run
  const { browser: kind, programs, args } = BROWSERS[name];
  const browser = await puppeteer.launch({
    browser: kind,
    executablePath: findProgram(programs),
    args,
    headless: true,
    protocolTimeout: 15 * MINUTES,
    timeout: MINUTES,
  });
  try {
    const version = (await browser.version()).replace(/^\D*\//, '');
    const page = await browser.newPage();
    await page.goto(`${base}/`);
    const run = worker ? inWorker : inPage;
    const answer = await page.evaluate(run, `/tools/bench/${module}`, { base, ...task });
    if (answer.error) throw new Error(answer.error);
    return { ...answer, peak: peakOfPages(browser.process().pid), browser: `${name} ${version}` };
  } finally {
    await browser.close();
  }
}

// These two run in the page: they know nothing of this file.

function inWorker(module, task) {
  return new Promise((resolve) => {
    const worker = new Worker(module, { type: 'module' });
    worker.onmessage = ({ data }) => resolve(data.answer ?? { error: data.error });
    worker.onerror = (event) => resolve({ error: event.message ?? 'the worker did not start' });
    worker.postMessage(task);
  });
}

async function inPage(module, task) {
  try {
    const { pass } = await import(module);
    return await pass(task);
  } catch (error) {
    return { error: String(error?.stack ?? error) };
  }
}
