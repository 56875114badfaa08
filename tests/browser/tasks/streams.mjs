export default async function streams({ loadModel }, { worker }) {
  const model = await loadModel('/build/packages/llama/', { worker });
  const chat = model.chat({ system: 'Be brief.' });
  const answer = chat.send('Hello', { maxTokens: 20, temperature: 1, seed: 4 });
  const pieces = [];
  for await (const piece of answer) pieces.push(piece);
  const { text } = await answer;
  const roles = chat.history.map(({ role }) => role);
  const left = model.generate('a story');
  for await (const piece of left) if (piece) break;
  const { finishReason: stopped } = await left;
  await model.close();
  return { pieces, text, roles, stopped };
}
