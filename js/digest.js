// digest.js - SHA-256 of bytes that come in chunks: Node's own, elsewhere a library's (browsers can only hash what they
// have whole).

import { sha256 } from '@noble/hashes/sha2.js';
import { isNode, nodeModule } from './platform.js';

/** @returns {{ update: (bytes: Uint8Array) => void, hex: () => string }} */
export function newDigest() {
  if (isNode) {
    const hash = nodeModule('crypto').createHash('sha256');
    return { update: (bytes) => void hash.update(bytes), hex: () => hash.digest('hex') };
  }
  const hash = sha256.create();
  const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return { update: (bytes) => void hash.update(bytes), hex: () => hex(hash.digest()) };
}
