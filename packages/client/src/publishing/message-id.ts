/**
 * Makes a source of message ids: 64 random bits for this client, and a counter. The server de-duplicates over all
 * clients [P-7.3]; `crypto.randomUUID` would do the same but is missing on pages without TLS.
 */
export function createMessageIds(): () => string {
  const prefix = crypto.getRandomValues(new Uint32Array(2)).join('-')
  let count = 0
  return () => `${prefix}-${count++}`
}
