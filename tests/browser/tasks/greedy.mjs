/** What a model says at temperature 0: its ids and texts, for each prompt. Also Node runs this (everywhere.test.mjs). */
export default async function greedy({ loadModel }, { source, prompts, maxTokens, options }) {
  const model = await loadModel(source, options);
  const answers = [];
  for (const prompt of prompts) {
    const promptIds = [...(await model.tokenize(prompt))];
    const { text, tokens } = await model.generate(prompt, { maxTokens });
    answers.push({ promptIds, tokens, text });
  }
  const { build, threads } = model.info;
  await model.close();
  return { answers, build, threads };
}
