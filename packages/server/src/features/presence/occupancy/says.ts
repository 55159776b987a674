import { type Fact, newerOf } from './fact.js'
import type { Say } from './say.js'

/** What the other nodes say, by node and pattern. */
export class Says {
  readonly #maxPerNode: number
  readonly #byNode = new Map<string, Map<string, Say>>()

  /** @param maxPerNode Most patterns of a node. */
  constructor(maxPerNode: number) {
    this.#maxPerNode = maxPerNode
  }

  /** Takes a say; one that says nothing removes what the node said. Returns whether there was room. */
  take(say: Say): boolean {
    const { id, node, isListened, fact } = say
    const says = this.#byNode.get(node) ?? new Map<string, Say>()
    this.#byNode.set(node, says)
    if (!isListened && fact === undefined) says.delete(id)
    else if (says.has(id) || says.size < this.#maxPerNode) says.set(id, say)
    else return false
    return true
  }

  /** The node is gone: returns what it said. */
  remove(node: string): readonly Say[] {
    const says = [...(this.#byNode.get(node)?.values() ?? [])]
    this.#byNode.delete(node)
    return says
  }

  patternsOf(node: string): Iterable<string> {
    return this.#byNode.get(node)?.keys() ?? []
  }

  /** All patterns, also more than once. */
  *patterns(): Iterable<string> {
    for (const says of this.#byNode.values()) yield* says.keys()
  }

  *listened(): Iterable<string> {
    for (const says of this.#byNode.values()) for (const { id, isListened } of says.values()) if (isListened) yield id
  }

  factOf(node: string | undefined, pattern: string): Fact | undefined {
    return node === undefined ? undefined : this.#byNode.get(node)?.get(pattern)?.fact
  }

  isListened(pattern: string): boolean {
    for (const says of this.#byNode.values()) if (says.get(pattern)?.isListened) return true
    return false
  }

  /** The newest of this fact and those of the other nodes. */
  newest(pattern: string, own: Fact | undefined): Fact | undefined {
    let newest = own
    for (const says of this.#byNode.values()) newest = newerOf(newest, says.get(pattern)?.fact)
    return newest
  }
}
