// builds.js - which of the wasm builds runs here. The only file that knows their names.
//
//   relaxed, relaxed-threads    relaxed SIMD: Chrome and Edge 114, Firefox 145, Node 22
//   simd128, simd128-threads    SIMD128: every browser since 2023, Node 18
//
// Builds with threads need shared memory, which browsers give to cross-origin isolated pages only.

import { MODULES } from './assets.js';
import { KraflaError } from './errors.js';
import { isNode, nodeModule, processors } from './platform.js';

const MOST_THREADS = 8; // by default: beyond that, memory is what is waited for

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

/** Threads to use where nobody says how many: most of the processors, since a page and its browser need some too. */
export function defaultThreads() {
  const n = processors();
  return Math.max(1, Math.min(MOST_THREADS, n > 2 ? Math.floor((3 * n) / 4) : n));
}

/**
 * The builds to try, best first.
 * @param {{ build?: string, threads: number }} options build: the only one
 */
export function buildsToTry({ build, threads }) {
  if (build !== undefined && !Object.hasOwn(MODULES, build))
    throw new KraflaError('ML_E_ARG', `build = ${build}: must be one of ${Object.keys(MODULES).join(', ')}`);
  const builds = build ? [build] : usableBuilds({ threads });
  if (builds.length === 0)
    throw new KraflaError('KRAFLA_E_BUILD', 'this browser has no SIMD for WebAssembly, which all builds need');
  return builds;
}

const modules = new Map(); // address -> promise of a module

/**
 * @param {string} build
 * @param {string | URL} [folder] where the modules are, if not beside this file
 * @returns {Promise<WebAssembly.Module>}
 */
export function loadBuild(build, folder) {
  const url = folder ? new URL(`${build}.wasm`, folder) : MODULES[build];
  if (!modules.has(url.href)) {
    const module = url.protocol === 'file:' && isNode ? compileFile(url) : compileAnswer(url);
    module.catch(() => modules.delete(url.href)); // the next one may have more luck
    modules.set(url.href, module);
  }
  return modules.get(url.href);
}

/** Says why the file with a module in it is of no use. */
export const failBuild = (url, error) => {
  const policy = /content.security|CSP|unsafe-eval/i.test(error.message);
  const hint = policy
    ? ": the page's Content-Security-Policy needs script-src 'wasm-unsafe-eval'"
    : ` (${error.message})`;
  throw new KraflaError('KRAFLA_E_BUILD', `${url.href} cannot be compiled${hint}`, { url: url.href, cause: error });
};

async function compileFile(url) {
  let bytes;
  try {
    bytes = nodeModule('fs').readFileSync(url);
  } catch (error) {
    throw new KraflaError('KRAFLA_E_BUILD', `${url.href} cannot be read (${error.code})`, {
      url: url.href,
      cause: error,
    });
  }
  return WebAssembly.compile(bytes).catch((error) => failBuild(url, error));
}

async function compileAnswer(url) {
  let response;
  try {
    response = await fetch(url);
  } catch (error) {
    throw new KraflaError('KRAFLA_E_BUILD', `${url.href} cannot be reached`, { url: url.href, cause: error });
  }
  if (!response.ok)
    throw new KraflaError('KRAFLA_E_BUILD', `${url.href}: the server answers ${response.status}`, {
      url: url.href,
      status: response.status,
    });
  const typed = /^application\/wasm\b/i.test(response.headers.get('content-type') ?? '');
  const module = typed
    ? WebAssembly.compileStreaming(response)
    : response.arrayBuffer().then((bytes) => WebAssembly.compile(bytes));
  return module.catch((error) => failBuild(url, error));
}
