// template_budget.js - runs a chat template, which comes with a model and is as little to be trusted as its weights: what it
// may compute is counted, so that one that would never end, or fill the memory, ends in an error instead. The renderer
// itself is a library, and is synchronous: while it runs nothing could interrupt it from outside.

import { Environment, Interpreter, Template } from '@huggingface/jinja';

// A step is about a microsecond. Templates of published models take some hundred for each message.
const STEPS = 1_000_000;
const STEPS_PER_CHARACTER = 20; // of what is rendered
const STEPS_PER_ROUND = 8; // of a loop, for what it does besides its body
const STEPS_PER_VALUE = 1 / 8; // within another one
const TEXT = 1 << 20;
const TEXT_PER_CHARACTER = 4;
const CHARACTERS_PER_STEP = 64;

class Budget {
  #steps;
  #mostText;

  /** @param {number} characters in the variables */
  constructor(characters) {
    this.#steps = STEPS + STEPS_PER_CHARACTER * characters;
    this.#mostText = TEXT + TEXT_PER_CHARACTER * characters;
  }

  spend(steps) {
    this.#steps -= steps;
    if (!(this.#steps >= 0)) throw new Error('it takes too many steps, or never ends');
  }

  /** For a value of the library's, and all that are in it: what is in several places counts in each. */
  spendOn({ value }) {
    this.spend(STEPS_PER_VALUE);
    if (typeof value === 'string') this.#spendOnText(value);
    else if (Array.isArray(value) || value instanceof Map) for (const item of value.values()) this.spendOn(item);
  }

  #spendOnText({ length }) {
    if (length > this.#mostText) throw new Error(`it makes a text of ${length} characters`);
    this.spend(length / CHARACTERS_PER_STEP);
  }
}

class BoundedInterpreter extends Interpreter {
  #budget;
  #uncounted = new WeakSet(); // expressions of which only a member is looked at
  #iterated = new WeakSet(); // and those that a loop goes through

  constructor(environment, budget) {
    super(environment);
    this.#budget = budget;
  }

  evaluate(statement, environment) {
    this.#budget.spend(1);
    if (statement?.type === 'MemberExpression') this.#uncounted.add(statement.object);
    if (statement?.type === 'For') this.#iterated.add(statement.iterable.lhs ?? statement.iterable);
    const result = super.evaluate(statement, environment);
    if (typeof result.value === 'string' || !this.#uncounted.has(statement)) this.#budget.spendOn(result);
    if (this.#iterated.has(statement))
      this.#budget.spend(STEPS_PER_ROUND * (result.value?.length ?? result.value?.size ?? 0));
    return result;
  }
}

/** As Python has it. */
function* counted(budget, first, second, step = 1) {
  const [start, stop] = second === undefined ? [0, first] : [first, second];
  if (step === 0) throw new Error('range() needs a step that is not zero');
  for (let i = start; step > 0 ? i < stop : i > stop; i += step) {
    budget.spend(STEPS_PER_ROUND);
    yield i;
  }
}

/** What templates may use without being given it, the same as in the library's own environment. */
const globals = (budget) => ({
  true: true,
  false: false,
  none: null,
  True: true,
  False: false,
  None: null,
  raise_exception: (message) => {
    throw new Error(message);
  },
  range: (...parameters) => [...counted(budget, ...parameters)],
  strftime_now: (format) => new Template('{{ strftime_now(format) }}').render({ format }),
});

/**
 * @param {string} source of the template
 * @param {Record<string, any>} variables
 * @param {number} characters about as many as are in the variables
 * @returns {string}
 */
export function renderWithin(source, variables, characters) {
  const budget = new Budget(characters);
  const environment = new Environment();
  for (const [name, value] of Object.entries({ ...globals(budget), ...variables })) environment.set(name, value);
  return new BoundedInterpreter(environment, budget).run(new Template(source).parsed).value;
}
