// The modules that `make wasm` has left in build/wasm, for tests.
import fs from 'node:fs';

export const root = new URL('../../', import.meta.url);
export const BUILDS = ['simd128', 'simd128-threads', 'relaxed', 'relaxed-threads'];

const cache = new Map();

export function moduleBytes(build) {
  if (!cache.has(build)) cache.set(build, fs.readFileSync(new URL(`build/wasm/${build}.wasm`, root)));
  return cache.get(build);
}

/** The builds that this Node runs. */
export const runnableBuilds = () => BUILDS.filter((build) => WebAssembly.validate(moduleBytes(build)));

export const compiled = (build) => WebAssembly.compile(moduleBytes(build));
