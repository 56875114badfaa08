// llama.cpp below node-llama-cpp's public classes: ids in, logits computed, nothing sampled.
import { getLlama } from 'node-llama-cpp';

const BATCH = 512; // its own default

export async function openContext(llama, file, threads, contextSize) {
  const model = await llama.loadModel({ modelPath: file });
  const context = await model.createContext({ contextSize, threads, batchSize: BATCH });
  const native = context._ctx; // its binding, which the public classes wrap
  let position = 0;
  const decode = async (ids, wanted) => {
    native.initBatch(ids.length);
    const indexes = native.addToBatch(0, position, Uint32Array.from(ids), Uint32Array.from(wanted));
    await native.decodeBatch();
    position += ids.length;
    return indexes;
  };
  return {
    model,
    native,
    decode,
    async evaluate(ids) {
      for (let at = 0; at < ids.length; at += BATCH) {
        const some = ids.slice(at, at + BATCH);
        await decode(some, at + some.length < ids.length ? [] : [some.length - 1]);
      }
    },
    clear() {
      native.removeTokenCellsFromSequence(0, 0, position);
      position = 0;
    },
  };
}

export const openLlama = (threads) => getLlama({ gpu: false, build: 'never', maxThreads: threads, logLevel: 'error' });

/** Its name in tables: the best of what llama.cpp says the processor has. */
export function isaOf(llama) {
  const features = llama._bindings.systemInfo();
  const has = (name) => new RegExp(`\\b${name} = 1`).test(features);
  if (has('AVX512_VNNI')) return 'avx512vnni';
  if (has('AVX512')) return 'avx512';
  if (has('AVX_VNNI')) return 'avxvnni';
  if (has('AVX2')) return 'avx2';
  return has('NEON') ? 'neon' : 'scalar';
}
