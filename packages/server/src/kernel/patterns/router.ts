import { ownText } from 'webmq-client/protocol'
import type { GroupId } from '../ports/transport.js'
import { trieWords } from '../ports/trie-words.js'
import { MatchCache } from './match-cache.js'
import { enter, TrieNode, wordsBelow } from './trie-node.js'
import { DEFAULT_VARIANT, type Format, formatOf, getsMeta, groupOf, indexOf, mayDrop, type Variant } from './variant.js'
import { WordFilter } from './word-filter.js'

export interface RouterOptions {
  /** Most keys whose match is cached; default 16,384. Without a bound, random keys would fill the memory. */
  readonly maxCachedKeys?: number
  /** Most cached group ids over all keys; default 1,048,576 (8 MiB). */
  readonly maxCachedGroups?: number
}

/** Shared by all keys that no pattern matches: most keys, if keys are random. */
const NO_GROUPS: readonly GroupId[] = []

/** Memory of a node of the trie with its word, and with the node of a broker's index. Measured: 100 to 130, and 60. */
const NODE_BYTES = 200
/** Memory of a routed pattern beside its text and nodes: its entries in maps, and its group. Measured: 200 to 250. */
const ROUTE_BYTES = 256

/** A routed pattern of one variant: one object for all its listeners. */
export interface Route {
  readonly pattern: string
  readonly variant: Variant
  /** Says the variant, see {@link groupOf}. */
  readonly group: GroupId
  /** Listeners, over connections and handlers in the process. */
  readonly references: number
}

interface Entry extends Route {
  readonly node: TrieNode
  references: number
  /** The route of another variant of the pattern. */
  next: Entry | undefined
}

/**
 * Finds the groups whose patterns match a key.
 *
 * A trie of words. `match` follows, word by word, only the nodes that match so far: patterns that do not match cost
 * nothing. It enters a node at most once per word, so patterns made to backtrack (`#.a.#.a…`) cost at most words x
 * nodes that match part of the key. A filter recognises most words that no pattern has, which saves lookups in a large
 * map. Answers are cached per key within a bound.
 *
 * Each {@link Variant} of a pattern is a route with a group of its own.
 */
export class Router {
  readonly #root = new TrieNode(undefined, '')
  /** Words of the trie's nodes, wildcards left out. */
  #words = WordFilter.empty()
  /** The first route of each pattern; the others follow it. */
  readonly #entries = new Map<string, Entry>()
  readonly #byIndex: (Entry | undefined)[] = []
  readonly #routeCounts: Record<Format, number> = { websocket: 0, sse: 0 }
  readonly #cache: MatchCache
  readonly #freeIndexes: number[] = []
  #indexCount = 0
  #nodeCount = 0
  /** Routes whose group may miss messages, see {@link mayDrop}. */
  droppingCount = 0
  /** Routes whose group gets who published a message, and when, see {@link getsMeta}. */
  metaCount = 0
  #charCount = 0
  #step = 0
  /**
   * Steps that all matches have taken, for those who pay for a match: the difference of two readings is its cost. One
   * is about 10 ns. A match takes at most one per word of the key and node of the trie; a cached one takes none.
   */
  stepCount = 0
  #active: TrieNode[] = []
  #next: TrieNode[] = []

  constructor(options: RouterOptions = {}) {
    const { maxCachedKeys = 16_384, maxCachedGroups = 1_048_576 } = options
    this.#cache = new MatchCache(maxCachedKeys, maxCachedGroups)
  }

  get patternCount(): number {
    return this.#entries.size
  }

  /** Estimated memory of all routes. Patterns that begin with the same words share nodes. */
  get byteCount(): number {
    const routeCount = this.#routeCounts.websocket + this.#routeCounts.sse
    return this.#nodeCount * NODE_BYTES + routeCount * ROUTE_BYTES + 2 * this.#charCount
  }

  *routes(): Iterable<Route> {
    for (const first of this.#entries.values()) {
      for (let entry: Entry | undefined = first; entry !== undefined; entry = entry.next) yield entry
    }
  }

  /** Number of routes of this format. While it is 0, no group of a match is of this format. */
  routeCountOf(format: Format): number {
    return this.#routeCounts[format]
  }

  /** The route of a pattern; `undefined` if it is not routed in this variant. */
  find(pattern: string, variant: Variant = DEFAULT_VARIANT): Route | undefined {
    return this.#find(pattern, variant)
  }

  routeOf(group: GroupId): Route | undefined {
    const entry = this.#byIndex[indexOf(group)]
    return entry?.group === group ? entry : undefined
  }

  /** Whether the pattern is routed in any variant. */
  has(pattern: string): boolean {
    return this.#entries.has(pattern)
  }

  /**
   * Routes a valid pattern, or adds a reference to its route. Group numbers are reused after the last reference is
   * removed.
   */
  add(pattern: string, variant: Variant = DEFAULT_VARIANT): Route {
    const known = this.#find(pattern, variant)
    if (known !== undefined) {
      known.references++
      return known
    }
    let node = this.#root
    for (const word of trieWords(pattern)) node = this.#childOf(node, ownText(word))
    this.#charCount += pattern.length
    const index = this.#freeIndexes.pop() ?? this.#indexCount++
    const group = groupOf(index, variant)
    if (node.groups === undefined) node.groups = [group]
    else node.groups.push(group)
    const first = this.#entries.get(pattern)
    const entry = { pattern, variant, group, node, references: 1, next: first?.next }
    if (first === undefined) this.#entries.set(pattern, entry)
    else first.next = entry
    this.#byIndex[index] = entry
    this.#routeCounts[formatOf(variant)]++
    if (mayDrop(group)) this.droppingCount++
    if (getsMeta(group)) this.metaCount++
    this.#invalidate(pattern)
    return entry
  }

  /**
   * Removes one reference. Does nothing for a pattern that is not routed in this variant.
   * @returns Whether it was the last reference of the pattern, over all variants.
   */
  remove(pattern: string, variant: Variant = DEFAULT_VARIANT): boolean {
    const entry = this.#find(pattern, variant)
    if (entry === undefined || --entry.references > 0) return false
    this.#unlink(entry)
    this.#charCount -= pattern.length
    const { node, group } = entry
    const rest = node.groups?.filter((other) => other !== group) ?? []
    node.groups = rest.length > 0 ? rest : undefined
    this.#prune(node)
    this.#byIndex[indexOf(group)] = undefined
    this.#freeIndexes.push(indexOf(group))
    this.#routeCounts[formatOf(variant)]--
    if (mayDrop(group)) this.droppingCount--
    if (getsMeta(group)) this.metaCount--
    this.#invalidate(pattern)
    return !this.#entries.has(pattern)
  }

  /** The groups whose patterns match the key, each once, in no order. The array is shared: do not change it. */
  match(key: string): readonly GroupId[] {
    const cached = this.#cache.get(key)
    if (cached !== undefined) return cached
    const groups = this.#walk(key)
    this.#cache.set(key, groups)
    return groups
  }

  #find(pattern: string, variant: Variant): Entry | undefined {
    let entry = this.#entries.get(pattern)
    while (entry !== undefined && entry.variant !== variant) entry = entry.next
    return entry
  }

  #unlink(entry: Entry): void {
    const { pattern, next } = entry
    let before = this.#entries.get(pattern)
    if (before !== entry) {
      while (before !== undefined && before.next !== entry) before = before.next
      if (before !== undefined) before.next = next
    } else if (next === undefined) this.#entries.delete(pattern)
    else this.#entries.set(pattern, next)
  }

  #walk(key: string): readonly GroupId[] {
    this.#active.length = 0
    enter(this.#root, this.#active, ++this.#step)
    for (const word of key.split('.')) {
      const step = ++this.#step
      const next = this.#next
      this.stepCount += this.#active.length
      const isKnown = this.#words.mayHave(word)
      next.length = 0
      for (const node of this.#active) {
        if (isKnown) enter(node.child(word), next, step)
        enter(node.star, next, step)
        if (node.word === '#') enter(node, next, step)
      }
      this.#next = this.#active
      this.#active = next
    }
    let groups: GroupId[] | undefined
    for (const node of this.#active) {
      if (node.groups === undefined) continue
      groups ??= []
      groups.push(...node.groups)
    }
    return groups ?? NO_GROUPS
  }

  #childOf(node: TrieNode, word: string): TrieNode {
    if (word === '*') {
      node.star ??= this.#createNode(node, word)
      return node.star
    }
    if (word === '#') {
      node.hash ??= this.#createNode(node, word)
      return node.hash
    }
    const known = node.child(word)
    if (known !== undefined) return known
    const child = this.#createNode(node, word)
    node.adopt(child)
    this.#words.add(word)
    if (this.#words.isFull) this.#words = this.#words.grown(wordsBelow(this.#root))
    return child
  }

  #createNode(parent: TrieNode, word: string): TrieNode {
    this.#nodeCount++
    return new TrieNode(parent, word)
  }

  /** Removes nodes without patterns, from the leaf up. */
  #prune(leaf: TrieNode): void {
    let node = leaf
    while (node.parent !== undefined && node.isBarren) {
      const { parent, word } = node
      this.#nodeCount--
      if (word === '*') parent.star = undefined
      else if (word === '#') parent.hash = undefined
      else {
        parent.disown(node)
        this.#words.delete(word)
      }
      node = parent
    }
  }

  /** A pattern without a wildcard changes the answer for one key only. */
  #invalidate(pattern: string): void {
    if (pattern.includes('*') || pattern.includes('#')) this.#cache.clear()
    else this.#cache.delete(pattern)
  }
}
