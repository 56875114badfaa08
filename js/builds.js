// builds.js - which of the wasm builds runs here. The only file that knows their names.
//
//   relaxed, relaxed-threads    relaxed SIMD: Chrome and Edge 114, Firefox 145, Node 22
//   simd128, simd128-threads    SIMD128: every browser since 2023, Node 18
//
// Builds with threads need shared memory, which browsers give to cross-origin isolated pages only.

// One function each that ends in the instruction in question.
const SIMD128 = [65, 0, 253, 15, 253, 98]; // i8x16.popcnt(i8x16.splat(0))
const RELAXED = [65, 1, 253, 15, 65, 2, 253, 15, 65, 3, 253, 15, 253, 147, 2]; // i32x4.relaxed_dot_i8x16_i7x16_add_s

function validates(instructions) {
  const body = [0, ...instructions, 11];
  const code = [1, body.length, ...body];
  const header = [0, 97, 115, 109, 1, 0, 0, 0];
  const type = [1, 5, 1, 96, 0, 1, 123]; // () -> v128
  return WebAssembly.validate(Uint8Array.from([...header, ...type, 3, 2, 1, 0, 10, code.length, ...code]));
}

export const hasSimd128 = () => validates(SIMD128);
export const hasRelaxedSimd = () => validates(RELAXED);

/** Shared memory that can be given to workers. */
export function hasSharedMemory() {
  if (typeof SharedArrayBuffer === 'undefined') return false;
  return typeof crossOriginIsolated === 'undefined' || crossOriginIsolated; // Node has no such thing, and needs none
}

/**
 * Names of the builds that run here, best first. A relaxed one may still find that the machine's relaxed SIMD is not
 * what it needs (Engine.start says so): then the next is to be tried.
 */
export function usableBuilds({ threads = 1 } = {}) {
  const suffix = threads > 1 && hasSharedMemory() ? '-threads' : '';
  const builds = [];
  if (hasRelaxedSimd()) builds.push(`relaxed${suffix}`);
  if (hasSimd128()) builds.push(`simd128${suffix}`);
  return builds;
}
