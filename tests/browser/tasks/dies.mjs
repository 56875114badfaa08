export default async function dies({ loadModel }) {
  const model = await loadModel('/build/packages/llama/', { workerUrl: '/functions/dying_worker.mjs' });
  const untilItDies = async () => {
    for (;;) await model.generate('a story', { maxTokens: 50 });
  };
  const gone = await untilItDies().catch(({ code, stack }) => code ?? stack);
  const missing = await loadModel('/build/packages/llama/', { workerUrl: '/nowhere.js' }).catch(({ code }) => code);
  return { gone, missing };
}
