// digest.js - SHA-256 of bytes that come in chunks: Node's own, elsewhere a library's (browsers can only hash what they
// have whole). The library's is a wasm module, three times as fast as one in JavaScript is in Chromium.

import { createSHA256 } from 'hash-wasm';
import { failBuild } from './builds.js';
import { isNode, nodeModule } from './platform.js';

/** @returns {Promise<{ update: (bytes: Uint8Array) => void, hex: () => string }>} */
export async function newDigest() {
  if (isNode) {
    const hash = nodeModule('crypto').createHash('sha256');
    return { update: (bytes) => void hash.update(bytes), hex: () => hash.digest('hex') };
  }
  const hash = await createSHA256().catch((error) => failBuild(new URL(import.meta.url), error));
  return { update: (bytes) => void hash.update(bytes), hex: () => hash.digest('hex') };
}
