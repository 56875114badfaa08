// model_picker.js - where models come from: the server's list (models/index.json), a folder, files, a drop.

import { bringsFiles, filesOfDrop, partsOf } from './dropped_files.js';
import { sizeWords } from './error_words.js';
import { button, element } from './transcript.js';

/** @typedef {{ id?: string, name: string, about?: string, bytes?: number, license?: string, source: string | File[] }} Choice */

/** Models that the page's server has. A static host may have none: then there is no list, and nothing is wrong. */
export async function modelsOfServer() {
  try {
    const response = await fetch('models/index.json', { cache: 'no-cache' });
    if (!response.ok) return [];
    const { models } = await response.json();
    return models.map((model) => ({ ...model, source: new URL(model.url, response.url).href }));
  } catch {
    return [];
  }
}

export class ModelPicker {
  #section;

  /**
   * @param {HTMLElement} section as in index.html
   * @param {{ onChoice: (choice: Choice) => void, onUseless: (files: File[]) => void }} receiver
   */
  constructor(section, { onChoice, onUseless }) {
    this.#section = section;
    this.onChoice = onChoice;
    this.onUseless = onUseless;
    for (const kind of ['folder', 'files']) this.#wireInput(kind);
    this.#wireDrops();
  }

  show(models) {
    this.#section.querySelector('#models').replaceChildren(...models.map((model) => this.#item(model)));
  }

  focus() {
    this.#section.querySelector('h2').focus();
  }

  #item(model) {
    const facts = [model.about, sizeWords(model.bytes), model.license].filter(Boolean).join(' · ');
    const load = button('', () => this.onChoice(model));
    load.append(element('strong', model.name), element('span', facts));
    load.dataset.model = model.id;
    return element('li', [load]);
  }

  #wireInput(kind) {
    const input = this.#section.querySelector(`#${kind}-input`);
    const open = this.#section.querySelector(`#choose-${kind}`);
    if (kind === 'folder' && !('webkitdirectory' in input)) open.hidden = true; // phones
    open.addEventListener('click', () => input.click());
    input.addEventListener('change', () => {
      const files = partsOf(input.files);
      input.value = ''; // the same choice again is a choice, too
      this.#take(files);
    });
  }

  #wireDrops() {
    let depth = 0;
    const cover = (delta) => {
      depth = Math.max(0, depth + delta);
      document.body.classList.toggle('dropping', depth > 0);
    };
    window.addEventListener('dragenter', (event) => bringsFiles(event) && cover(1));
    window.addEventListener('dragleave', (event) => bringsFiles(event) && cover(-1));
    window.addEventListener('dragover', (event) => bringsFiles(event) && event.preventDefault());
    window.addEventListener('drop', async (event) => {
      if (!bringsFiles(event)) return;
      event.preventDefault();
      cover(-depth);
      try {
        this.#take(await filesOfDrop(event.dataTransfer));
      } catch {
        this.onUseless([]);
      }
    });
  }

  #take(files) {
    const model = files.find(({ name }) => /\.mlb$/i.test(name));
    if (!model) return this.onUseless(files);
    this.onChoice({ name: folderOf(model) || model.name, source: files });
  }
}

const folderOf = ({ webkitRelativePath = '' }) => webkitRelativePath.split('/').at(-2) ?? '';
