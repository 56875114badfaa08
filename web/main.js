// main.js - the page: choose a model, load it, talk to it. Everything else here is a part that this file puts together.

import { loadModel } from 'krafla-web';
import { Conversation } from './conversation.js';
import { explain, nothingUsable } from './error_words.js';
import { FactsLine } from './facts_line.js';
import { LoadProgress } from './load_progress.js';
import { ModelPicker, modelsOfServer } from './model_picker.js';
import { ideasFor, presetFor } from './presets.js';
import { SettingsPanel } from './settings_panel.js';
import { button, element, Transcript } from './transcript.js';

const WASM = new URL('wasm/', document.baseURI);
const NO_ANSWER = 'The model had nothing to say.';
const NO_WORD_YET = 'Stopped before the first word.';
const byId = (id) => document.getElementById(id);
const [text, send, stop] = ['text', 'send', 'stop'].map(byId);

const panel = new SettingsPanel(byId('settings'), {
  threadsAtMost: globalThis.crossOriginIsolated ? Math.min(navigator.hardwareConcurrency ?? 1, 16) : 1,
});
const transcript = new Transcript(byId('transcript'));
const facts = new FactsLine(byId('facts'));
const picker = new ModelPicker(byId('picker'), {
  onChoice: (choice) => load(choice),
  onUseless: (files) => showProblem(nothingUsable(files)),
});

let models = [];
let model; // the loaded one
let conversation;
let loading; // AbortController of a load that is under way

// ---------------------------------------------------------------- what is seen

/** One of the three: 'picker', 'loading', 'talk'. */
function show(view) {
  for (const id of ['picker', 'loading', 'talk']) byId(id).hidden = id !== view;
  byId('foot').hidden = view !== 'talk';
  byId('clear').hidden = view !== 'talk';
  byId('change-model').hidden = view === 'picker' && !model;
  byId('change-model').textContent = view === 'picker' ? 'Back' : 'Model';
}

/** Said to those who do not see the page. */
function announce(words) {
  byId('announcer').textContent = words;
}

/** @param {{ words: string, details: string }} problem @param {{ label: string, act: () => void }} [remedy] */
function showProblem({ words, details }, remedy) {
  const parts = [element('p', words)];
  if (details) parts.push(element('details', [element('summary', 'Details'), element('p', details)]));
  if (remedy) parts.push(button(remedy.label, () => (clearProblem(), remedy.act())));
  parts.push(button('Close', clearProblem));
  byId('problem').replaceChildren(...parts);
}

function clearProblem() {
  const hadFocus = byId('problem').contains(document.activeElement);
  byId('problem').replaceChildren();
  if (hadFocus) focusView();
}

function focusView() {
  if (!byId('talk').hidden) text.focus();
  else if (!byId('loading').hidden) byId('loading-title').focus();
  else picker.focus();
}

// ---------------------------------------------------------------- loading

async function load(choice) {
  loading?.abort();
  const controller = (loading = new AbortController());
  clearProblem();
  await closeModel(); // first, so that there are never two in memory
  if (controller.signal.aborted) return;
  byId('loading-title').textContent = `Loading ${choice.name}`;
  byId('load-bar').removeAttribute('value');
  byId('load-words').textContent = '';
  show('loading');
  byId('loading-title').focus();
  try {
    const loaded = await loadFitting(choice.source, controller.signal);
    if (controller.signal.aborted) return void loaded.close();
    useModel(loaded, choice);
  } catch (error) {
    if (controller !== loading) return; // another load has taken its place
    show('picker');
    picker.focus();
    if (controller.signal.aborted) announce('Loading was cancelled.');
    else showProblem(explain(error), { label: 'Try again', act: () => load(choice) });
  } finally {
    if (controller === loading) loading = undefined;
  }
}

/** A context that is longer than the model allows becomes its longest; the engine says so before anything is fetched. */
async function loadFitting(source, signal) {
  const options = { wasmUrl: WASM, cache: true, signal, onProgress: progressShower() };
  try {
    return await loadModel(source, { ...panel.load, ...options });
  } catch (error) {
    if (error.code !== 'ML_E_CONTEXT') throw error;
    return loadModel(source, { ...panel.load, contextSize: undefined, ...options });
  }
}

function progressShower() {
  const progress = new LoadProgress();
  return (event) => {
    const { value, words } = progress.update(event, performance.now());
    if (value === undefined) byId('load-bar').removeAttribute('value');
    else byId('load-bar').value = value;
    byId('load-words').textContent = words;
  };
}

function useModel(loaded, choice) {
  model = loaded;
  const name = model.info.name ?? choice.name;
  const { hasChatTemplate } = model.info;
  conversation = new Conversation(model);
  panel.usePreset(presetFor(model.info), hasChatTemplate);
  facts.showModel(name, model.info);
  text.placeholder = hasChatTemplate ? 'Ask something' : 'Begin a text; empty: go on with it';
  byId('text-label').textContent = hasChatTemplate ? 'Your question' : 'Text to go on with';
  send.textContent = hasChatTemplate ? 'Send' : 'Continue';
  clear();
  show('talk');
  announce(`${name} is ready.`);
  text.focus();
}

async function closeModel() {
  const old = model;
  model = undefined;
  conversation?.stop();
  conversation = undefined;
  await old?.close();
}

// ---------------------------------------------------------------- talking

function ask(words) {
  if (!conversation || conversation.isAnswering) return;
  clearProblem();
  if (words.trim() !== '') {
    conversation.say(conversation.isChat ? words.trim() : words);
    transcript.add(conversation.last);
  } else if (conversation.isChat || conversation.entries.length === 0) {
    return void text.focus();
  }
  text.value = '';
  fitText();
  answer();
}

async function answer() {
  const current = conversation;
  const run = {};
  setAnswering(true);
  transcript.wait();
  announce(current.isChat ? 'Answering.' : 'Writing.');
  let failure;
  let entry;
  let nothing = NO_ANSWER;
  try {
    const result = await current.answer(panel.answer, {
      onText(growing) {
        if (current !== conversation || !current.entries.includes(growing)) return; // cleared meanwhile
        if (!entry) transcript.add(growing);
        entry = growing;
        transcript.more();
        count(run, current.progress);
      },
    });
    if (result.finishReason === 'stopped') nothing = NO_WORD_YET;
    if (current === conversation && current.entries.length > 0) facts.showResult(result);
  } catch (error) {
    failure = error;
  }
  if (current !== conversation) return; // another model has taken its place, and has set the page up
  setAnswering(false);
  if (current.entries.length === 0) return;
  if (entry) transcript.finish({ onRegenerate: regenerate, onCopy: copy });
  else transcript.offerAgain(regenerate, undefined, failure ? '' : nothing);
  if (failure) failed(failure);
  else announce(entry ? `${entry.finish === 'stopped' ? 'Stopped' : 'Answer'}: ${entry.text}` : nothing);
}

/** Speed is counted from the first piece of an answer on. */
function count(run, { tokens, contextUsed }) {
  const now = performance.now();
  run.since ??= now;
  run.before ??= tokens;
  facts.showRunning({ tokens: tokens - run.before, ms: now - run.since, contextUsed });
}

function failed(error) {
  const died = error.code === 'KRAFLA_E_WORKER' || error.code === 'KRAFLA_E_CLOSED';
  const remedy = died ? { label: 'Choose a model', act: chooseModel } : { label: 'Clear', act: clear };
  showProblem(explain(error), died || error.code === 'ML_E_CONTEXT' ? remedy : undefined);
}

function regenerate() {
  if (!conversation || conversation.isAnswering) return;
  clearProblem();
  conversation.takeBack();
  transcript.takeBack();
  text.focus(); // the button that was pressed is gone
  answer();
}

async function copy(words) {
  try {
    await navigator.clipboard.writeText(words);
    announce('Copied.');
  } catch {
    showProblem({
      words: 'The browser does not let this page copy. Select the text and copy it yourself.',
      details: '',
    });
  }
}

function clear() {
  if (!conversation) return;
  conversation.clear();
  clearProblem();
  transcript.reset({ isChat: conversation.isChat, ideas: ideasFor(model.info), onIdea: ask });
  facts.showContext(0);
  text.focus();
}

function chooseModel() {
  if (!byId('picker').hidden && model) return (show('talk'), text.focus());
  loading?.abort();
  show('picker');
  picker.focus();
}

function setAnswering(is) {
  const stopHadFocus = document.activeElement === stop;
  send.hidden = is;
  stop.hidden = !is;
  if (document.activeElement === document.body || stopHadFocus) text.focus();
}

/** As high as its text, up to what CSS allows. */
function fitText() {
  text.style.height = 'auto';
  text.style.height = `${text.scrollHeight}px`;
}

// ---------------------------------------------------------------- wiring

byId('composer').addEventListener('submit', (event) => {
  event.preventDefault();
  ask(text.value);
});
text.addEventListener('input', fitText);
text.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  ask(text.value);
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !byId('settings').open) conversation?.stop();
});
stop.addEventListener('click', () => conversation?.stop());
byId('clear').addEventListener('click', clear);
byId('change-model').addEventListener('click', chooseModel);
byId('settings-button').addEventListener('click', () => panel.open());
byId('cancel-loading').addEventListener('click', () => loading?.abort(new DOMException('cancelled', 'AbortError')));

async function begin() {
  models = await modelsOfServer();
  picker.show(models);
  const wanted = new URLSearchParams(location.search).get('model'); // ?model=smollm2 loads at once
  const choice = models.find(({ id }) => id === wanted);
  if (choice) return load(choice);
  show('picker');
  if (wanted) showProblem({ words: `This server has no model called "${wanted}". Choose another one.`, details: '' });
}

begin();
