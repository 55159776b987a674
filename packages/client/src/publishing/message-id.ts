/**
 * Makes a generator of message ids: 64 random bits for this client, and a counter. The server removes duplicates across
 * all clients [P-7.3]. Not `crypto.randomUUID`: pages without TLS do not have it.
 */
export function createMessageIds(): () => string {
  const prefix = crypto.getRandomValues(new Uint32Array(2)).join('-')
  let count = 0
  return () => `${prefix}-${count++}`
}
