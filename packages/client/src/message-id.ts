/**
 * Makes a source of message ids: 96 random bits for this client, and a counter. The server de-duplicates over all
 * clients, so they must not meet; `crypto.randomUUID` would do the same but is missing on pages without TLS.
 */
export function createMessageIds(): () => string {
  const words = crypto.getRandomValues(new Uint32Array(3))
  const prefix = Array.from(words, (word) => word.toString(36)).join('')
  let count = 0
  return () => `${prefix}-${(count++).toString(36)}`
}
