/**
 * Makes a name from 128 random bits, in hex. Not `crypto.randomUUID`: pages without TLS do not have it. Without `crypto`, as in
 * React Native, `Math.random` is used: such a name is unique, but others may guess it.
 */
export function randomName(): string {
  const bits = new Uint32Array(4)
  if (typeof globalThis.crypto?.getRandomValues === 'function') crypto.getRandomValues(bits)
  else for (let index = 0; index < 4; index++) bits[index] = Math.random() * 2 ** 32
  return Array.from(bits, (word) => word.toString(16).padStart(8, '0')).join('')
}
