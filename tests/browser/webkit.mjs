// WebKitGTK for tests: its MiniBrowser on a screen of its own that nobody sees (it cannot do without one), driven by
// Debian's WebKitWebDriver.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';

const DRIVER = '/usr/bin/WebKitWebDriver';
const SCREEN = '/usr/bin/Xvfb';
const LIBRARIES = '/usr/lib';
const MINUTES = 60_000;

/** Debian keeps it in the folder of the machine's kind. */
function findMiniBrowser() {
  const folders = fs.readdirSync(LIBRARIES).filter((name) => name.endsWith('-linux-gnu'));
  const places = folders.map((name) => `${LIBRARIES}/${name}/webkit2gtk-4.1/MiniBrowser`);
  return places.find((place) => fs.existsSync(place));
}

export const whyNoWebKit = () =>
  fs.existsSync(DRIVER) && fs.existsSync(SCREEN) && findMiniBrowser()
    ? undefined
    : 'no WebKitGTK with its driver and Xvfb (tools/setup-browser.sh)';

/** Starts a program. `ended` resolves when it has ended by itself or by `end`, or could not be started. */
function start(program, options, spawnOptions) {
  const child = spawn(program, options, spawnOptions);
  const ended = new Promise((resolve) => {
    child.once('exit', resolve);
    child.once('error', resolve);
  });
  const end = () => {
    child.kill();
    return ended;
  };
  return { child, end, ended };
}

/** Xvfb chooses a number that is free, and tells it once it is ready. */
async function startScreen() {
  const options = ['-displayfd', '3', '-screen', '0', '1280x900x24', '-nolisten', 'tcp'];
  const screen = start(SCREEN, options, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
  const told = new Promise((resolve) => screen.child.stdio[3].once('data', (number) => resolve(String(number).trim())));
  const number = await Promise.race([told, screen.ended]);
  if (typeof number !== 'string') throw new Error(`${SCREEN} ended with ${number}`);
  return { display: `:${number}`, end: screen.end };
}

function freePort() {
  const server = net.createServer();
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function startDriver(display) {
  const port = await freePort();
  const env = {
    ...process.env,
    DISPLAY: display,
    // There is neither a graphics card nor, in a container, a right to make sandboxes.
    WEBKIT_DISABLE_COMPOSITING_MODE: '1',
    WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1',
    // Isolated pages of Safari have SharedArrayBuffer; those of this build say that they are isolated, and lack it.
    JSC_useSharedArrayBuffer: '1',
  };
  const driver = start(DRIVER, [`--port=${port}`], { env, stdio: 'ignore' });
  const address = `http://127.0.0.1:${port}`;
  let hasEnded = false;
  driver.ended.then(() => (hasEnded = true));
  const isReady = () => fetch(`${address}/status`).then(({ ok }) => ok, () => false); // prettier-ignore
  while (!(await isReady())) {
    if (hasEnded) throw new Error(`${DRIVER} ended`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { address, end: driver.end };
}

/** Of a page, what tests use: by the names and with the meaning that Playwright and Puppeteer have given them. */
class WebKitPage {
  #driver;
  #library;

  constructor(driver, library) {
    this.#driver = driver;
    this.#library = library;
  }

  goto(address) {
    return this.#driver.get(address);
  }

  /** @param {(given: any) => any} use a function of the page, which may be asynchronous @param {any} [given] as JSON */
  async evaluate(use, given) {
    const script = `
      const done = arguments[1];
      (async () => (${use})(arguments[0]))().then(
        (value) => done({ value }),
        (error) => done({ error: String(error?.stack ?? error) }),
      );`;
    const { value, error } = await this.#driver.executeAsyncScript(script, given ?? null);
    if (error) throw new Error(error);
    return value;
  }

  /** Until it can be seen. */
  async waitForSelector(selector, { timeout }) {
    const { By, until } = this.#library;
    const found = await this.#driver.wait(until.elementLocated(By.css(selector)), timeout, selector);
    await this.#driver.wait(until.elementIsVisible(found), timeout, selector);
  }

  #element(selector) {
    return this.#driver.findElement(this.#library.By.css(selector));
  }

  async click(selector) {
    await this.#element(selector).click();
  }

  async type(selector, text) {
    await this.#element(selector).sendKeys(text);
  }

  keyboard = {
    press: (key) => this.#driver.actions().sendKeys(this.#library.Key[key.toUpperCase()]).perform(),
  };
}

/** @returns {Promise<{ page: WebKitPage, close: () => Promise<void> }>} */
export async function launchWebKit() {
  const library = await import('selenium-webdriver');
  const running = [];
  const close = async () => {
    for (const { end } of running.reverse()) await end();
  };
  try {
    running.push(await startScreen());
    running.push(await startDriver(running[0].display));
    const wanted = new library.Capabilities({
      browserName: 'MiniBrowser',
      'webkitgtk:browserOptions': { binary: findMiniBrowser(), args: ['--automation'] },
    });
    const driver = await new library.Builder().usingServer(running[1].address).withCapabilities(wanted).build();
    running.push({ end: () => driver.quit() });
    await driver.manage().setTimeouts({ script: 10 * MINUTES });
    return { page: new WebKitPage(driver, library), close };
  } catch (error) {
    await close();
    throw error;
  }
}
