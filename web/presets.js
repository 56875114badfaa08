// presets.js - what suits a model: the settings that a page begins with, and what to say while nothing has been said.
//
// A package may state its own sampling (model.info.sampling), which wins over these.

/** Of every setting, what it is when nobody says otherwise. */
export const PLAIN = {
  system: '',
  temperature: 0,
  topK: 0,
  topP: 1,
  minP: 0,
  repetitionPenalty: 1,
  maxTokens: 512,
  seed: undefined,
};

const TELLER = { ...PLAIN, temperature: 0.8, topP: 0.95, maxTokens: 256 };

// SmolLM2 with 135 M weights answers wrongly or at length under the system prompt that its template brings ("You are a
// helpful AI assistant named SmolLM, ..."). Of seven prompts tried on questions of facts, arithmetic and what was said
// before, this one did best (docs/WEB.md).
const SMOLLM2 = {
  ...PLAIN,
  system: 'You are a knowledgeable assistant. Give short, correct answers.',
  repetitionPenalty: 1.1,
};

/** @param {{ name?: string, hasChatTemplate: boolean, sampling?: object }} info of a loaded model */
export function presetFor({ name = '', hasChatTemplate, sampling = {} }) {
  const known = Object.entries(sampling).filter(([option]) => Object.hasOwn(PLAIN, option));
  const own = Object.fromEntries(known);
  if (!hasChatTemplate) return { ...TELLER, ...own };
  return { ...(/smollm2/i.test(name) ? SMOLLM2 : PLAIN), ...own };
}

/** What may be asked, or begun, by a click. */
export function ideasFor({ hasChatTemplate }) {
  return hasChatTemplate
    ? ['What is the capital of France?', 'Write a short poem about rain.', 'Name three fruits.']
    : ['Once upon a time', 'One day, a little fox', 'There was a careful girl'];
}
