// The life of a model, as a page sees it: it is loaded, generates, is stopped and closed.
export default async function lives({ loadModel }, { worker }) {
  const phases = new Set();
  const model = await loadModel('/build/packages/llama/', { worker, onProgress: ({ phase }) => phases.add(phase) });
  const never = { logitBias: { [model.info.stopTokens[0]]: -Infinity } }; // an end by itself

  const whole = await model.generate([3, 5, 7, 11], { maxTokens: 20 });
  const answer = model.generate('a story', never);
  let pieces = '';
  for await (const piece of answer) {
    pieces += piece;
    if (answer.tokens.length > 4) answer.stop();
  }
  const stopped = await answer;

  const pending = model.generate('a story', never).catch(({ code }) => code);
  const seen = model.generate('another', never);
  await model.close();
  const codes = [await pending, await seen.catch(({ code }) => code)];
  codes.push(await model.generate('a story').catch(({ code }) => code));
  return { phases: [...phases], info: model.info, whole, pieces, stopped, codes };
}
