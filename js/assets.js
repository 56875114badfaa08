// assets.js - where the wasm modules are. Written out one by one, in the one form that bundlers know.

export const MODULES = {
  simd128: new URL('../build/wasm/simd128.wasm', import.meta.url),
  'simd128-threads': new URL('../build/wasm/simd128-threads.wasm', import.meta.url),
  relaxed: new URL('../build/wasm/relaxed.wasm', import.meta.url),
  'relaxed-threads': new URL('../build/wasm/relaxed-threads.wasm', import.meta.url),
};
