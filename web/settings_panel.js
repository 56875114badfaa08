// settings_panel.js - the settings of the next answer, and of the next load.

import { PLAIN } from './presets.js';
import { element } from './transcript.js';

const CONTEXT_SIZES = [512, 1024, 2048, 4096, 8192, 16384, 32768];

// One row for each setting of an answer. `chat`: only where there are roles. Ranges show their value.
const FIELDS = [
  {
    name: 'system',
    label: 'System prompt',
    kind: 'text',
    chat: true,
    help: "Tells the model what to be. Empty: what the model's own template says.",
  },
  {
    name: 'temperature',
    label: 'Temperature',
    kind: 'range',
    min: 0,
    max: 2,
    step: 0.05,
    help: '0: always the likeliest word. Higher: more variety.',
  },
  {
    name: 'topP',
    label: 'Top p',
    kind: 'range',
    min: 0.05,
    max: 1,
    step: 0.05,
    help: 'Of the likeliest tokens, those that together reach this probability. 1: all.',
  },
  {
    name: 'topK',
    label: 'Top k',
    kind: 'number',
    min: 0,
    max: 1000,
    step: 1,
    help: 'Only the k likeliest tokens. 0: all.',
  },
  {
    name: 'minP',
    label: 'Min p',
    kind: 'range',
    min: 0,
    max: 0.5,
    step: 0.01,
    help: "Only tokens with at least this part of the likeliest one's probability.",
  },
  {
    name: 'repetitionPenalty',
    label: 'Repetition penalty',
    kind: 'range',
    min: 1,
    max: 1.5,
    step: 0.01,
    help: '1: none. Higher: less of what was said before.',
  },
  { name: 'maxTokens', label: 'Longest answer, in tokens', kind: 'number', min: 1, max: 32768, step: 1 },
  {
    name: 'seed',
    label: 'Seed',
    kind: 'number',
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    step: 1,
    help: 'The same seed gives the same answer. Empty: a new one each time.',
  },
];

export class SettingsPanel {
  #dialog;
  #inputs = new Map();
  #preset = PLAIN;
  #load = {};

  /** @param {HTMLDialogElement} dialog as in index.html @param {{ threadsAtMost: number }} machine */
  constructor(dialog, { threadsAtMost }) {
    this.#dialog = dialog;
    const fields = dialog.querySelector('#settings-fields');
    fields.append(...FIELDS.map((field) => this.#row(field)), this.#loadFields(threadsAtMost));
    dialog.querySelector('#settings-reset').addEventListener('click', () => this.#show(this.#preset));
    dialog.addEventListener('click', (event) => event.target === dialog && dialog.close()); // the backdrop
    this.#show(this.#preset);
  }

  open() {
    this.#dialog.showModal();
  }

  /** A model is there: its settings. @param {object} preset @param {boolean} isChat */
  usePreset(preset, isChat) {
    this.#preset = preset;
    this.#show(preset);
    for (const { name, chat } of FIELDS) if (chat) this.#inputs.get(name).closest('.field').hidden = !isChat;
  }

  /** For generate(), and `system`. A value out of its range is put back into it. */
  get answer() {
    return Object.fromEntries(FIELDS.map((field) => [field.name, this.#read(field)]));
  }

  /** For loadModel(). */
  get load() {
    const threads = Number(this.#load.threads.value);
    const contextSize = Number(this.#load.contextSize.value);
    return { ...(contextSize > 0 && { contextSize }), ...(threads > 0 && { threads }) };
  }

  #read({ name, kind, min, max, step }) {
    const { value } = this.#inputs.get(name);
    if (kind === 'text') return value.trim();
    const number = Number(value);
    if (value.trim() === '' || !Number.isFinite(number)) return this.#preset[name];
    const inside = Math.min(max, Math.max(min, number));
    return step === 1 ? Math.round(inside) : inside;
  }

  #show(values) {
    for (const [name, input] of this.#inputs) {
      input.value = values[name] ?? '';
      input.dispatchEvent(new Event('input'));
    }
  }

  #row({ name, label, kind, help, ...limits }) {
    const input = element(kind === 'text' ? 'textarea' : 'input', '');
    input.id = `setting-${name}`;
    if (kind === 'text') input.rows = 3;
    else Object.assign(input, { type: kind, min: limits.min, max: limits.max, step: limits.step });
    this.#inputs.set(name, input);
    const caption = element('label', label);
    caption.htmlFor = input.id;
    const parts = [caption];
    if (kind === 'range') {
      const output = element('output', '');
      output.htmlFor = input.id;
      input.addEventListener('input', () => (output.value = Number(input.value).toString()));
      parts.push(output);
    }
    parts.push(input);
    if (help) parts.push(helpFor(input, help));
    return element('div', parts, 'field');
  }

  #loadFields(threadsAtMost) {
    const contexts = [[0, 'automatic'], ...CONTEXT_SIZES.map((size) => [size, `${size} tokens`])];
    const threads = [[0, 'automatic'], ...Array.from({ length: threadsAtMost }, (_, i) => [i + 1, String(i + 1)])];
    const title = element('legend', 'When a model is loaded');
    return element('fieldset', [
      title,
      this.#select('contextSize', 'Context', contexts, 'How much the model can have in mind. More takes more memory.'),
      this.#select(
        'threads',
        'Threads',
        threads,
        threadsAtMost > 1 ? '' : 'Several take a page that is cross-origin isolated.',
      ),
    ]);
  }

  #select(name, label, choices, help) {
    const select = element(
      'select',
      choices.map(([value, text]) => new Option(text, value)),
    );
    select.id = `setting-${name}`;
    this.#load[name] = select;
    const caption = element('label', label);
    caption.htmlFor = select.id;
    const parts = [caption, select];
    if (help) parts.push(helpFor(select, help));
    return element('div', parts, 'field');
  }
}

function helpFor(input, text) {
  const help = element('p', text, 'help');
  help.id = `${input.id}-help`;
  input.setAttribute('aria-describedby', help.id);
  return help;
}
