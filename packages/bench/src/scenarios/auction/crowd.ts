/**
 * Connections of each item, the largest crowd first: item k gets a share proportional to 1/k^`zipf`, rounded so that the
 * sum is `connections`.
 */
export function crowdOf(connections: number, items: number, zipf: number): number[] {
  const weights = Array.from({ length: items }, (_, index) => (index + 1) ** -zipf)
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const exact = weights.map((weight) => (weight / total) * connections)
  const crowd = exact.map(Math.floor)
  const left = connections - crowd.reduce((sum, count) => sum + count, 0)
  // The largest remainders get what is left.
  const byRemainder = exact.map((share, item) => ({ item, remainder: share % 1 }))
  byRemainder.sort((a, b) => b.remainder - a.remainder || a.item - b.item)
  for (const { item } of byRemainder.slice(0, left)) crowd[item] = (crowd[item] ?? 0) + 1
  return crowd
}

/** The node of each item: the largest crowd first, each to the node that has the fewest connections. */
export function shardsOf(crowd: readonly number[], nodeCount: number): number[] {
  const loads = Array.from({ length: nodeCount }, () => 0)
  const shards: number[] = []
  const largestFirst = crowd
    .map((count, item) => ({ count, item }))
    .sort((a, b) => b.count - a.count || a.item - b.item)
  for (const { count, item } of largestFirst) {
    const node = loads.indexOf(Math.min(...loads))
    loads[node] = (loads[node] ?? 0) + count
    shards[item] = node
  }
  return shards
}
