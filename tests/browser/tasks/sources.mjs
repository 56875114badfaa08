const NAMES = ['model.json', 'model.mlb', 'tokenizer.mlt'];

export default async function sources({ loadModel }, { faults }) {
  const blobs = await Promise.all(
    NAMES.map((name) => fetch(`/build/packages/llama/${name}`).then((answer) => answer.blob())),
  );
  const files = blobs.map((blob, i) => new File([blob], NAMES[i]));
  const bytes = await blobs[1].arrayBuffer();
  const outcome = async (source, options) => {
    try {
      const model = await loadModel(source, options);
      const { tokens } = await model.generate([3, 5, 7, 11], { maxTokens: 8 });
      await model.close();
      return `${tokens.length} tokens`;
    } catch (error) {
      return error.code ?? error.stack;
    }
  };
  const outcomes = {
    dropped: await outcome(files),
    bytes: await outcome(bytes),
    stream: await outcome(blobs[1].stream()),
    nowhere: await outcome('http://127.0.0.1:1/model.mlb', { retries: 1 }),
  };
  for (const fault of ['cut', 'html', '404', '500', 'short', 'flipped'])
    outcomes[fault] = await outcome(`${faults}/${fault}/llama/model.json`);
  // Only here: a machine that is slow or busy stands still by itself for such a while.
  outcomes.stall = await outcome(`${faults}/stall/llama/model.json`, { timeout: 1500, retries: 1 });
  return outcomes;
}
