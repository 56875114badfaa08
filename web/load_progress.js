// load_progress.js - how far a model is, in bytes and in time left.

const MEGABYTE = 1e6;
const WINDOW_MS = 4000; // the speed is that of the last seconds: networks change their minds
const SETTLED_MS = 800; // before that, a guess of the time left would only jump about

export const megabytes = (bytes) =>
  bytes < 10 * MEGABYTE ? (bytes / MEGABYTE).toFixed(1) : Math.round(bytes / MEGABYTE);

export class LoadProgress {
  #samples = [];

  /**
   * @param {{ loaded: number, total?: number }} event of loadModel
   * @param {number} now milliseconds
   * @returns {{ value?: number, words: string }} value: from 0 to 1, if it can be told
   */
  update({ phase, loaded, total }, now) {
    this.#samples.push({ now, loaded });
    while (this.#samples.length > 2 && this.#samples[1].now < now - WINDOW_MS) this.#samples.shift();
    if (phase === 'ready') return { value: 1, words: 'Ready.' };
    if (!total) return { words: `${megabytes(loaded)} MB` };
    const words = [`${megabytes(loaded)} of ${megabytes(total)} MB`, this.#timeLeft(total - loaded)];
    return { value: loaded / total, words: words.filter(Boolean).join(', ') };
  }

  #timeLeft(bytes) {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    const ms = last.now - first.now;
    if (ms < SETTLED_MS || last.loaded === first.loaded) return '';
    return `${durationWords(((bytes / (last.loaded - first.loaded)) * ms) / 1000)} left`;
  }
}

export function durationWords(seconds) {
  const s = Math.max(1, Math.round(seconds));
  if (s < 90) return `${s} s`;
  const minutes = Math.round(s / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
