export interface Candidate {
  readonly node: string
  readonly count: number
}

/**
 * The node that gets a message, in proportion to its members.
 *
 * A message with an id goes to the same node while that node has members: a publisher that repeats a publish after a lost
 * connection, perhaps at another node, reaches the node that knows the id already. Rendezvous hashing: a node that comes
 * or goes changes the pick of its own share of the ids alone.
 */
export function pickNode(candidates: readonly Candidate[], messageId: string | undefined): string | undefined {
  if (candidates.length < 2) return candidates[0]?.node
  let best: string | undefined
  let bestScore = Number.NEGATIVE_INFINITY
  for (const { node, count } of candidates) {
    const chance = messageId === undefined ? 1 - Math.random() : unitOf(messageId, node)
    // The least of exponential variables with these rates.
    const score = Math.log(chance) / count
    if (score > bestScore) {
      best = node
      bestScore = score
    }
  }
  return best
}

/** A number above 0 and at most 1 that looks like chance: FNV-1a, then the finalizer of MurmurHash3. */
function unitOf(messageId: string, node: string): number {
  let hash = 0x811c9dc5
  for (const text of [messageId, ' ', node]) {
    for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (((hash ^ (hash >>> 16)) >>> 0) + 1) / 2 ** 32
}
