/**
 * Makes a name from 128 random bits, in hex. Not `crypto.randomUUID`: pages without TLS do not have it. Without `crypto`, as in
 * React Native, `Math.random` is used: such a name is unique, but others may guess it.
 */
export function randomName(): string {
  const bits = new Uint32Array(4)
  const words = globalThis.crypto?.getRandomValues?.(bits) ?? bits.map(() => Math.random() * 2 ** 32)
  return Array.from(words, (word) => word.toString(16).padStart(8, '0')).join('')
}
