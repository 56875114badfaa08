// What the types allow, and after @ts-expect-error what they do not. Compiled, not run.
import { KraflaError, loadModel, probe } from '../../../js/index.js';
import type { Answer, Chat, Message, Model, Progress, Result } from '../../../js/index.js';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>) => {};

export async function rightUses(files: FileList, stream: ReadableStream<Uint8Array>, bytes: ArrayBuffer) {
  await using model = await loadModel('/model/model.json', {
    onProgress: ({ phase, loaded, total }: Progress) => console.log(phase, loaded, total),
    signal: AbortSignal.timeout(1000),
    threads: 2,
    build: 'simd128',
  });
  for (const source of [files, stream, bytes, new URL('https://x/y.mlb'), new Blob([]), new Uint8Array(5)])
    await loadModel(source, { worker: false });
  const answer: Answer = model.generate('text', { maxTokens: 5, stop: ['a'], logitBias: { 5: -Infinity }, seed: 5n });
  for await (const piece of answer) same<typeof piece, string>(true);
  const result = await answer;
  same<typeof result, Result>(true);
  same<typeof result.finishReason, 'stop' | 'length' | 'stopped'>(true);
  model.generate([1, 2, 3]);
  model.generate(new Int32Array(3));
  model.generate([{ role: 'user', content: 'Hi' }], { templateOptions: { enable_thinking: false } });
  const chat: Chat = model.chat({ system: 'Be brief.', temperature: 1 });
  const { logprobs } = await model.generate('Hi', { logprobs: 3 });
  const likeliest: number | undefined = logprobs?.[0]?.top[0]?.id;
  console.log(likeliest, (await model.bench()).receivedTokensPerSecond);
  const { text } = await chat.send('Hi', { onToken: ({ id, text: piece }) => console.log(id, piece) });
  const history: Message[] = chat.fork().history;
  const ids = await model.tokenize(text);
  same<typeof ids, Int32Array>(true);
  const { perplexity } = await model.score(ids);
  const { fits, memoryBytes } = await probe('model/');
  return [history, perplexity, fits, memoryBytes];
}

export async function wrongUses(model: Model) {
  // @ts-expect-error: no such option
  await loadModel('x', { thread: 2 });
  // @ts-expect-error: no such build
  await loadModel('x', { build: 'avx2' });
  // @ts-expect-error: no source
  await loadModel(5);
  // @ts-expect-error: an option of chat
  model.generate('x', { system: 'x' });
  // @ts-expect-error: not a number
  model.generate('x', { temperature: 'hot' });
  // @ts-expect-error: a message without content
  model.generate([{ role: 'user' }]);
  // @ts-expect-error: read-only
  model.info = model.info;
  // @ts-expect-error: pieces are strings
  for await (const piece of model.generate('x')) piece.id;
  try {
    await model.close();
  } catch (error) {
    if (error instanceof KraflaError && error.code === 'KRAFLA_E_HTTP') return error.status;
    // @ts-expect-error: no such code
    if (error instanceof KraflaError && error.code === 'KRAFLA_E_LUCK') return 0;
  }
  return undefined;
}
