/** FNV-1a over the UTF-16 units of both texts. */
function weightOf(node: string, pattern: string): number {
  let hash = 0x811c9dc5
  for (const text of [node, '\n', pattern]) {
    for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  // FNV's last characters reach the high bits only after more rounds; without it one node would get most patterns.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return (hash ^ (hash >>> 13)) >>> 0
}

/**
 * The node that tells the backend of a pattern: the same on all nodes that know the same nodes, and another one only for the
 * patterns of a node that comes or goes (rendezvous hashing).
 */
export function ownerOf(pattern: string, nodes: readonly string[]): string | undefined {
  let owner: string | undefined
  let best = -1
  for (const node of nodes) {
    const weight = weightOf(node, pattern)
    if (weight > best || (weight === best && owner !== undefined && node > owner)) {
      owner = node
      best = weight
    }
  }
  return owner
}
