// generate(): the native program's ids, pieces, stops, aborts, seeds, the end of the context, and several at once.
import assert from 'node:assert/strict';
import test from 'node:test';
import { StopMatcher } from '../../js/stops.js';
import { STORIES_LOOP, firstPieces, nativeIds, onBothSkins, rejectsWith, withModel } from './skins.mjs';

const PROMPT = 'the end of the story';

for (const name of ['llama', 'hybrid', 'window'])
  onBothSkins(`${name}: greedy ids are those of ml_run, with any number of threads`, async (skin) => {
    for (const threads of [1, 2])
      await withModel(name, { ...skin, threads }, async (model) => {
        const ids = await model.tokenize(PROMPT);
        const { tokens, finishReason, usage } = await model.generate(ids, { maxTokens: 60 });
        const expected = nativeIds(name, ids, 60);
        const stop = expected.indexOf(model.info.stopTokens[0]);
        assert.deepEqual(tokens, stop < 0 ? expected : expected.slice(0, stop));
        assert.equal(finishReason, stop < 0 ? 'length' : 'stop');
        assert.equal(usage.completionTokens, tokens.length);
        assert.equal(usage.promptTokens, ids.length);
      });
  });

onBothSkins('loops of a TinyLoop model, and keys and values as bytes: as ml_run has them', async (skin) => {
  for (const [options, flags] of [
    [{}, []],
    [{ loops: 1 }, ['--loops', '1']],
    [{ loops: 6, kv: 'q8' }, ['--loops', '6', '--kv', 'q8']],
  ])
    await withModel(STORIES_LOOP, { ...skin, ...options }, async (model) => {
      const ids = await model.tokenize('Once upon a time');
      const { tokens } = await model.generate(ids, { maxTokens: 40 });
      assert.deepEqual(tokens, nativeIds(STORIES_LOOP, ids, 40, ...flags));
      if (flags.length > 0) assert.notDeepEqual(tokens, nativeIds(STORIES_LOOP, ids, 40), 'they make a difference');
    });
  await rejectsWith(withModel(STORIES_LOOP, { ...skin, loops: 1000 }), 'ML_E_ARG', /loops = 1000/);
  await rejectsWith(withModel('llama', { ...skin, loops: 2 }), 'ML_E_ARG', /loops = 2/);
});

onBothSkins('pieces are whole characters, and together the text', async (skin) => {
  await withModel('llama', skin, async (model) => {
    for (let seed = 0; seed < 8; seed++) {
      const answer = model.generate(PROMPT, { maxTokens: 60, temperature: 2, seed });
      const pieces = [];
      for await (const piece of answer) {
        assert.notEqual(piece, '');
        assert.ok(piece.isWellFormed?.() ?? true);
        pieces.push(piece);
      }
      const { text, tokens } = await answer;
      assert.equal(pieces.join(''), text);
      assert.equal(answer.text, text);
      assert.ok(pieces.length > Math.log2(tokens.length) - 2, `${pieces.length} pieces of ${tokens.length} tokens`);
      assert.equal(await model.detokenize(tokens), text);
    }
  });
});

onBothSkins('iterated late, it gives everything all the same', async (skin) => {
  await withModel('llama', skin, async (model) => {
    const answer = model.generate(PROMPT, { maxTokens: 40 });
    await new Promise((resolve) => setTimeout(resolve, 100));
    const pieces = [];
    for await (const piece of answer) pieces.push(piece);
    assert.equal(pieces.join(''), (await answer).text);
  });
});

onBothSkins('logprobs are those of the logits, whatever is sampled from them', async (skin) => {
  await withModel('llama', skin, async (model) => {
    const told = [];
    const sampling = { temperature: 1.5, seed: 3, repetitionPenalty: 1.3, maxTokens: 12 };
    const { tokens, logprobs } = await model.generate(PROMPT, {
      ...sampling,
      logprobs: 4,
      onToken: (token) => told.push(token),
    });
    assert.deepEqual(
      logprobs.map(({ id }) => id),
      tokens,
    );
    assert.deepEqual(
      told.map((token) => token.logprobs),
      logprobs,
    );
    const prompt = [...(await model.tokenize(PROMPT))];
    for (const [i, { id, logprob, top }] of logprobs.entries()) {
      // The same by another way: what a text costs that ends in the token, less what it costs without.
      const costs = await Promise.all(
        [i, i + 1].map(async (n) => {
          const { meanNll, scoredTokens } = await model.score([...prompt, ...tokens.slice(0, n)]);
          return meanNll * scoredTokens;
        }),
      );
      assert.ok(Math.abs(logprob - (costs[0] - costs[1])) < 1e-9 * Math.abs(costs[1]), `${id}: ${logprob}, ${costs}`);
      assert.equal(top.length, 4);
      assert.ok(top.every((each, at) => at === 0 || each.logprob <= top[at - 1].logprob));
      assert.ok(logprob <= top[0].logprob);
      const [greedy] = (await model.generate([...prompt, ...tokens.slice(0, i)], { maxTokens: 1 })).tokens;
      if (greedy !== undefined) assert.equal(top[0].id, greedy);
    }
    const everything = await model.generate(PROMPT, { maxTokens: 1, logprobs: 20, onToken: () => {} });
    assert.ok(everything.logprobs[0].top.reduce((sum, each) => sum + Math.exp(each.logprob), 0) <= 1);
    const plain = await model.generate(PROMPT, sampling);
    assert.deepEqual(plain.tokens, tokens);
    assert.equal(plain.logprobs, undefined);
    await rejectsWith(
      Promise.resolve().then(() => model.generate(PROMPT, { logprobs: 21 })),
      'ML_E_ARG',
      /0 to 20/,
    );
  });
});

onBothSkins('nobody is made to take more than he asks for', async (skin) => {
  await withModel('llama', skin, async (model) => {
    const answer = model.generate(PROMPT, { maxTokens: 200 });
    const iterator = answer[Symbol.asyncIterator]();
    await iterator.next();
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.ok(answer.tokens.length < 20, `${answer.tokens.length} tokens, although one piece was taken`);
    await iterator.return();
  });
});

onBothSkins('stop strings: nothing of them is ever shown, wherever tokens end', async (skin) => {
  await withModel('llama', skin, async (model) => {
    const { text } = await model.generate(PROMPT, { maxTokens: 60 });
    const characters = [...text];
    for (const at of [1, 7, 20]) {
      const stop = characters.slice(at, at + 4).join('');
      const answer = model.generate(PROMPT, { maxTokens: 60, stop: [stop, 'never to be seen'] });
      let shown = '';
      for await (const piece of answer) {
        shown += piece;
        assert.ok(!shown.includes(stop));
      }
      assert.equal(shown, text.slice(0, text.indexOf(stop)));
      assert.equal((await answer).finishReason, 'stop');
    }
    const whole = await model.generate(PROMPT, { maxTokens: 60, stop: 'never to be seen' });
    assert.equal(whole.text, text);
  });
});

test('stop strings: what is found does not depend on the pieces', () => {
  const cases = [
    [['D E F'], ' A B C D E F G', ' A B C ', true],
    [['\n', 'Alice:'], ' Alice! Hi', ' Alice! Hi', false],
    [['ab', 'bc'], 'xabc', 'x', true],
    [['abcd', 'bc'], 'xabcd', 'xa', true],
    [['aab'], 'aaab', 'a', true],
    [['a\0b'], 'xa\0by', 'x', true],
  ];
  for (const [stops, text, shown, found] of cases)
    for (let size = 1; size <= text.length; size++) {
      const matcher = new StopMatcher(stops);
      let result = '';
      let stopped = false;
      for (let at = 0; at < text.length && !stopped; at += size) {
        const piece = matcher.push(text.slice(at, at + size));
        result += piece.text;
        stopped = piece.stopped;
      }
      if (!stopped) result += matcher.finish();
      assert.deepEqual([result, stopped], [shown, found], `${stops} in pieces of ${size}`);
    }
});

onBothSkins('stop() ends it with what there is; leaving the loop does, too', async (skin) => {
  await withModel('llama', skin, async (model) => {
    const solo = await model.generate(PROMPT, { maxTokens: 60 });
    const answer = model.generate(PROMPT, { maxTokens: 60, onToken: ({ index }) => index === 4 && answer.stop() });
    const result = await answer;
    assert.equal(result.finishReason, 'stopped');
    assert.deepEqual(result.tokens, solo.tokens.slice(0, 5));
    const left = model.generate(PROMPT, { maxTokens: 60 });
    const pieces = await firstPieces(left, 2);
    assert.equal((await left).finishReason, 'stopped');
    assert.ok(solo.text.startsWith(pieces.join('')));
    assert.deepEqual(await model.generate(PROMPT, { maxTokens: 60 }).then(({ text }) => text), solo.text);
  });
});

onBothSkins('an abort rejects with its reason at once, and the next call works', async (skin) => {
  await withModel('llama', skin, async (model) => {
    const { text } = await model.generate(PROMPT, { maxTokens: 30 });
    const reason = new Error('enough');
    await assert.rejects(model.generate(PROMPT, { signal: AbortSignal.abort(reason) }), reason);

    const controller = new AbortController();
    const onToken = ({ index }) => index === 2 && controller.abort(reason);
    const answer = model.generate(PROMPT, { maxTokens: 400, signal: controller.signal, onToken });
    await assert.rejects(answer, reason);
    assert.equal(answer.tokens.length, 3);
    await assert.rejects(answer, reason);

    const other = new AbortController();
    const iterated = model.generate(PROMPT, { maxTokens: 400, signal: other.signal });
    await assert.rejects(async () => {
      for await (const piece of iterated) if (piece) other.abort(reason);
    }, reason);
    assert.equal((await model.generate(PROMPT, { maxTokens: 30 })).text, text);
    other.abort();
  });
});

onBothSkins('several at once are as if each were alone', async (skin) => {
  for (const name of ['llama', 'hybrid'])
    await withModel(name, skin, async (model) => {
      const prompts = ['the end', 'a story', 'the end of it'];
      const options = { maxTokens: 20, temperature: 1, seed: 3 };
      const solo = [];
      for (const prompt of prompts) solo.push((await model.generate(prompt, options)).text);
      const together = await Promise.all(prompts.map((prompt) => model.generate(prompt, options)));
      assert.deepEqual(
        together.map(({ text }) => text),
        solo,
      );
      let inner;
      let outer = '';
      for await (const piece of model.generate(prompts[0], options)) {
        outer += piece;
        inner ??= (await model.generate(prompts[1], options)).text; // in the middle of the other
      }
      assert.deepEqual([outer, inner], solo.slice(0, 2));
    });
});

onBothSkins('seeds: the same text for the same one, and it is told', async (skin) => {
  await withModel('llama', skin, async (model) => {
    const text = async (seed) => (await model.generate(PROMPT, { maxTokens: 30, temperature: 1, seed })).text;
    assert.equal(await text(7), await text(7));
    assert.notEqual(await text(7), await text(8));
    assert.notEqual(await text(7), await text(2 ** 32 + 7));
    assert.equal(await text(0), await text(0n));
    const free = await model.generate(PROMPT, { maxTokens: 30, temperature: 1 });
    assert.notEqual(free.text, await text(undefined));
    assert.equal(await text(free.seed), free.text);
  });
});

onBothSkins('penalties and biases', async (skin) => {
  await withModel('llama', skin, async (model) => {
    const { tokens } = await model.generate(PROMPT, { maxTokens: 5 });
    const banned = await model.generate(PROMPT, { maxTokens: 5, logitBias: { [tokens[0]]: -Infinity } });
    assert.ok(!banned.tokens.includes(tokens[0]));
    const forced = await model.generate(PROMPT, { maxTokens: 5, logitBias: { 42: 1000 } });
    assert.deepEqual(forced.tokens, [42, 42, 42, 42, 42]);
    const fresh = await model.generate(PROMPT, { maxTokens: 40, presencePenalty: 1000 });
    assert.equal(new Set(fresh.tokens).size, fresh.tokens.length);
  });
});

onBothSkins('the end of the context', async (skin) => {
  await withModel('llama', { ...skin, contextSize: 32 }, async (model) => {
    const ids = Array.from({ length: 33 }, (_, i) => i + 1);
    const results = [];
    for (const n of [30, 31, 32]) {
      const { tokens, finishReason } = await model.generate(ids.slice(0, n));
      results.push([tokens.length, finishReason]);
    }
    assert.deepEqual(results, [
      [2, 'length'],
      [1, 'length'],
      [0, 'length'],
    ]);
    await rejectsWith(model.generate(ids), 'ML_E_CONTEXT', /33.*32/);
    assert.equal((await model.generate(ids.slice(0, 31))).tokens.length, 1);
    assert.deepEqual((await model.generate([1, 2], { maxTokens: 0 })).tokens, []);
  });
});

onBothSkins('ids and options that are no such thing', async (skin) => {
  await withModel('llama', skin, async (model) => {
    for (const ids of [[-1], [735], [2 ** 31], [1.5], [NaN], ['5'], []])
      await rejectsWith((async () => model.generate(ids))(), 'ML_E_ARG');
    const wrong = [
      [{ temprature: 1 }, /is temperature meant/],
      [{ temperature: -1 }, /temperature = -1/],
      [{ temperature: NaN }, /temperature/],
      [{ topP: 1.5 }, /topP/],
      [{ stop: '' }, /stop/],
      [{ seed: -1 }, /seed/],
      [{ maxTokens: 1.5 }, /maxTokens/],
      [{ max_tokens: 5 }, /is maxTokens meant/],
      [{ logitBias: { 9999: 1 } }, /9999/],
      [{ logitBias: { a: 1 } }, /logitBias/],
    ];
    for (const [options, pattern] of wrong)
      await rejectsWith((async () => model.generate('a', options))(), 'ML_E_ARG', pattern);
    assert.equal((await model.generate('a', { maxTokens: 3 })).tokens.length, 3);
  });
});

onBothSkins('a prompt that begins like the one before costs only what is new', async (skin) => {
  for (const name of ['llama', 'hybrid', 'window'])
    await withModel(name, skin, async (model) => {
      const first = Array.from({ length: 40 }, (_, i) => 1 + ((i * 37) % 500));
      const begun = await model.generate(first, { maxTokens: 10 });
      const longer = [...first, ...begun.tokens, 5, 6, 7];
      const reused = await model.generate(longer, { maxTokens: 10 });
      assert.ok(reused.usage.cachedTokens >= first.length + begun.tokens.length - 1, name);
      const elsewhere = [...first.slice(0, 20), 9, ...first.slice(20)];
      const edited = await model.generate(elsewhere, { maxTokens: 10 });
      assert.ok(edited.usage.cachedTokens <= 20);
      await withModel(name, skin, async (fresh) => {
        assert.deepEqual((await fresh.generate(elsewhere, { maxTokens: 10 })).tokens, edited.tokens, name);
        assert.deepEqual((await fresh.generate(longer, { maxTokens: 10 })).tokens, reused.tokens, name);
      });
    });
});
