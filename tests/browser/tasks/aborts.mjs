export default async function aborts({ loadModel }, { worker }) {
  const model = await loadModel('/build/packages/llama/', { worker });
  const controller = new AbortController();
  let aborted;
  const onToken = ({ index }) => {
    if (index !== 3) return;
    aborted = performance.now();
    controller.abort();
  };
  const options = { signal: controller.signal, onToken, logitBias: { [model.info.stopTokens[0]]: -Infinity } };
  const error = await model.generate('a story', options).catch((reason) => reason);
  const ms = performance.now() - aborted;
  const { tokens } = await model.generate('a story', { maxTokens: 5 });
  await model.close();
  return { name: error.name, ms, after: tokens.length };
}
