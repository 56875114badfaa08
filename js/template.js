// template.js - messages to the text of a prompt, by the model's own chat template, as transformers does it.
//
// A template's control tokens come from the template alone. What looks like one in a message is put between two marks
// before rendering; the marks are taken out again, and what was between them becomes a plain span, which the tokenizer
// does not search for control tokens. Marking only what looks like one leaves everything else that templates do with
// messages (strip, split, comparisons) as it is. The ends of a message are marked, too, if together with the template's
// text around them they could spell a control token.

import { KraflaError } from './errors.js';
import { renderWithin } from './template_budget.js';

const MOST_TEXT = 1 << 24; // characters of a rendered prompt

/**
 * @param {string} source of the template
 * @param {object[]} messages
 * @param {{ tokens: Record<string, string>, controls: string[], templateOptions?: object }} options tokens: bos_token and
 *   so on; controls: texts of control tokens; templateOptions: further variables
 * @returns {{ text: string, plain: [number, number][] }}
 */
export function renderChat(source, messages, { tokens, controls, templateOptions = {} }) {
  const given = JSON.stringify([messages, templateOptions]);
  const marks = unusedMarks(given + source);
  const guarded = guard(messages, marks, controls);
  const variables = {
    add_generation_prompt: true,
    tools: null,
    ...tokens,
    ...guard(templateOptions, marks, controls),
    messages: guarded,
  };
  let rendered;
  try {
    rendered = renderWithin(source, variables, given.length);
  } catch (error) {
    throw new KraflaError('KRAFLA_E_TEMPLATE', `chat template: ${unmark(error.message, marks).text}`, { cause: error });
  }
  if (rendered.length > MOST_TEXT)
    throw new KraflaError(
      'KRAFLA_E_TEMPLATE',
      `chat template: ${rendered.length} characters, at most ${MOST_TEXT} are allowed`,
    );
  return unmark(rendered, marks);
}

// ---------------------------------------------------------------- marks

/** Two characters that occur nowhere in the text; Unicode says that these will never be characters of any text. */
function unusedMarks(text) {
  const marks = [];
  for (let code = 0xfdd0; marks.length < 2; code = code === 0xfdef ? 0xe000 : code + 1)
    if (!text.includes(String.fromCharCode(code))) marks.push(String.fromCharCode(code));
  return marks;
}

/** The same value with marks in all of its strings that need them, keys of objects left alone. */
function guard(value, marks, controls) {
  if (typeof value === 'string') return markText(value, marks, controls);
  if (Array.isArray(value)) return value.map((item) => guard(item, marks, controls));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, guard(item, marks, controls)]));
}

function markText(text, [open, close], controls) {
  let result = '';
  let done = 0;
  for (const [from, to] of merge(suspects(text, controls))) {
    result += text.slice(done, from) + open + text.slice(from, to) + close;
    done = to;
  }
  return result + text.slice(done);
}

/** Where the text spells a control token, and where its ends could be part of one; without the blanks that templates may
 * take away, as well. */
function* suspects(text, controls) {
  const start = text.length - text.trimStart().length;
  const end = text.trimEnd().length;
  for (const control of controls) {
    for (let at = text.indexOf(control); at >= 0; at = text.indexOf(control, at + 1)) yield [at, at + control.length];
    for (let n = 1; n < control.length; n++) {
      for (const at of new Set([0, start])) if (text.startsWith(control.slice(-n), at)) yield [at, at + n];
      for (const at of new Set([text.length, end]))
        if (at >= n && text.startsWith(control.slice(0, n), at - n)) yield [at - n, at];
    }
  }
}

/** Rising, and one where several overlap. */
function merge(spans) {
  const merged = [];
  for (const [from, to] of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}

/** Takes the marks out. A mark that has lost its partner (templates may cut texts) still keeps tokens from lying
 * across it. */
function unmark(marked, [open, close]) {
  let text = '';
  const plain = [];
  let from = -1; // where the open span began
  for (const piece of marked.split(new RegExp(`([${open}${close}])`))) {
    if (piece !== open && piece !== close) {
      text += piece;
      continue;
    }
    if (piece === open) {
      if (from >= 0) plain.push([from, from]);
      from = text.length;
    } else {
      plain.push([from >= 0 ? from : text.length, text.length]);
      from = -1;
    }
  }
  if (from >= 0) plain.push([from, from]);
  return { text, plain };
}
