// The demo page as its visitors meet it: the server program of `make demo`, and what a visitor does by keyboard and mouse.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SCREENSHOTS = path.join(ROOT, 'build/screenshots');

/**
 * Starts web/serve.mjs on a free port.
 * @param {{ models?: Record<string, string>, open?: string, isolated?: boolean }} options models: id to folder
 * @returns {Promise<{ address: string, stop: () => Promise<number> }>} stop: by Ctrl-C; gives the exit code
 */
export function startServer({ models = {}, open, isolated = true } = {}) {
  const command = ['web/serve.mjs', '--port', '0'];
  for (const [id, folder] of Object.entries(models)) command.push('--model', `${id}=${folder}`);
  if (open) command.push('--open', open);
  if (!isolated) command.push('--not-isolated');
  const server = spawn(process.execPath, command, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => server.once('exit', resolve));
  const stop = () => {
    server.kill('SIGINT');
    return ended;
  };
  return new Promise((resolve, reject) => {
    server.stdout.once('data', (line) => resolve({ address: String(line).trim(), stop }));
    ended.then((code) => reject(new Error(`web/serve.mjs ended with ${code}`)));
  });
}

/** What a visitor sees and does. */
export class Visitor {
  constructor(page) {
    this.page = page;
    this.errors = []; // of the page's scripts, and what its policy forbade
    page.on('pageerror', (error) => this.errors.push(String(error)));
    page.on('console', (message) => message.type() === 'error' && this.errors.push(message.text()));
  }

  /** Waits for something to be there; a problem that the page tells of ends it at once. */
  async waitFor(selector, timeout) {
    await this.page.locator(selector).or(this.page.locator('#problem p').first()).first().waitFor({ timeout });
    const problem = await this.problem();
    if (problem) throw new Error(`the page says: ${problem}`);
  }

  waitForModel(timeout = 120_000) {
    return this.waitFor('#text', timeout);
  }

  /** Types, and sends by the keyboard. */
  async say(words) {
    await this.page.locator('#text').fill(words);
    await this.page.evaluate(() => document.querySelector('.actions')?.setAttribute('data-before', ''));
    await this.page.keyboard.press('Enter');
  }

  /** Says something, waits for the whole answer and gives its text. */
  async ask(words) {
    await this.say(words);
    return this.answer();
  }

  async answer(timeout = 120_000) {
    await this.waitFor('.actions:not([data-before])', timeout);
    return this.page.locator('article.assistant .body').last().textContent();
  }

  /** Waits until that many characters of an answer have been written. */
  async answerOfLength(n) {
    const longEnough = (length) => {
      const growing = document.querySelector('article.assistant[aria-busy="true"] .body');
      return (growing?.textContent.length ?? 0) >= length;
    };
    await this.page.waitForFunction(longEnough, n, { timeout: 30_000 });
  }

  /** Changes one of the settings, by its name in web/presets.js. */
  async setting(name, value) {
    await this.page.getByRole('button', { name: 'Settings' }).click();
    await this.page.locator(`#setting-${name}`).fill(value);
    await this.page.getByRole('button', { name: 'Done' }).click();
  }

  entries() {
    return this.page.locator('article').count();
  }

  problem() {
    return this.page.locator('#problem').textContent();
  }

  announced() {
    return this.page.locator('#announcer').textContent();
  }

  focused() {
    return this.page.evaluate(() => document.activeElement.id);
  }

  /**
   * Drops files on the page, as if out of a file manager.
   * @param {{ name: string, bytes: Uint8Array }[]} files
   */
  async drop(files) {
    const plain = files.map(({ name, bytes }) => ({ name, base64: Buffer.from(bytes).toString('base64') }));
    const transfer = await this.page.evaluateHandle((dropped) => {
      const made = new DataTransfer();
      for (const { name, base64 } of dropped)
        made.items.add(new File([Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0))], name));
      return made;
    }, plain);
    for (const type of ['dragenter', 'dragover', 'drop'])
      await this.page.dispatchEvent('body', type, { dataTransfer: transfer });
  }

  /** Into build/screenshots, for people to look at. */
  async screenshot(name) {
    fs.mkdirSync(SCREENSHOTS, { recursive: true });
    await this.page.screenshot({ path: path.join(SCREENSHOTS, `${name}.png`) });
  }
}

/** The files of a package, as they would be dropped. */
export function filesOf(folder) {
  const names = fs.readdirSync(folder).filter((name) => /\.(json|mlb|mlt)$/.test(name));
  return names.map((name) => ({ name, bytes: fs.readFileSync(path.join(folder, name)) }));
}
