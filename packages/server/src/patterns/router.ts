import type { GroupId } from '../ports/transport.js'
import { MatchCache } from './match-cache.js'
import { WordFilter } from './word-filter.js'

/** Bounds of a {@link Router}. */
export interface RouterOptions {
  /** Keys whose match is remembered; default 16,384. Keeps random keys from growing the memory. */
  readonly maxCachedKeys?: number
  /** Group ids remembered over all keys; default 1,048,576 (8 MiB). */
  readonly maxCachedGroups?: number
}

const DEFAULT_MAX_CACHED_KEYS = 16_384
const DEFAULT_MAX_CACHED_GROUPS = 1_048_576
/** One for all keys that nothing matches: most of a cache of random keys. */
const NO_GROUPS: readonly GroupId[] = []

/** One place in the trie: the words of a pattern up to here, wildcards included. */
class TrieNode {
  readonly parent: TrieNode | undefined
  readonly word: string
  /** The child by exact word, while there is but one: a map takes more memory than all the rest. */
  only: TrieNode | undefined
  /** Children by exact word, from the second one on. */
  children: Map<string, TrieNode> | undefined
  star: TrieNode | undefined
  hash: TrieNode | undefined
  /** Patterns that end here. More than one only when they mean the same: `#.*` and `*.#`. */
  groups: GroupId[] | undefined
  /** Number of the last step that entered this node: a node is visited once per word, whatever leads to it. */
  step = 0

  constructor(parent: TrieNode | undefined, word: string) {
    this.parent = parent
    this.word = word
  }

  child(word: string): TrieNode | undefined {
    return this.only === undefined ? this.children?.get(word) : this.only.word === word ? this.only : undefined
  }

  adopt(child: TrieNode): void {
    if (this.children === undefined && this.only === undefined) {
      this.only = child
      return
    }
    this.children ??= new Map()
    if (this.only !== undefined) this.children.set(this.only.word, this.only)
    this.only = undefined
    this.children.set(child.word, child)
  }

  disown(child: TrieNode): void {
    if (this.only === child) this.only = undefined
    this.children?.delete(child.word)
    if (this.children?.size === 0) this.children = undefined
  }

  /** Leads to no pattern. */
  get isBarren(): boolean {
    return [this.groups, this.only, this.children, this.star, this.hash].every((part) => part === undefined)
  }
}

/** A pattern that is routed: one object for all who listen with it. */
export interface Route {
  readonly pattern: string
  readonly group: GroupId
}

interface Entry extends Route {
  readonly node: TrieNode
  references: number
}

/**
 * Finds the groups whose patterns match a key.
 *
 * A trie of words. `match` follows, word by word, only the nodes that match so far: patterns that do not match
 * cost nothing, and a node is entered at most once per word, so that patterns made to backtrack (`#.a.#.a…`) cost
 * at most words x nodes that match a part of the key. A filter knows most of the words that are in no pattern, which saves
 * looking for them in a large map. Answers are cached per key within a bound.
 */
export class Router {
  readonly #root = new TrieNode(undefined, '')
  /** Words of the trie's nodes, wildcards left out. */
  #words = WordFilter.empty()
  readonly #entries = new Map<string, Entry>()
  readonly #cache: MatchCache
  readonly #freeGroups: GroupId[] = []
  #groupCount = 0
  #step = 0
  #active: TrieNode[] = []
  #next: TrieNode[] = []

  constructor(options: RouterOptions = {}) {
    this.#cache = new MatchCache({
      maxKeys: options.maxCachedKeys ?? DEFAULT_MAX_CACHED_KEYS,
      maxGroups: options.maxCachedGroups ?? DEFAULT_MAX_CACHED_GROUPS,
    })
  }

  /** Patterns that are routed now. */
  get patternCount(): number {
    return this.#entries.size
  }

  /** What is routed now. */
  routes(): Iterable<Route> {
    return this.#entries.values()
  }

  /** The route of a pattern; `undefined` when it is not routed now. */
  find(pattern: string): Route | undefined {
    return this.#entries.get(pattern)
  }

  /** Whether the pattern is routed now. */
  has(pattern: string): boolean {
    return this.#entries.has(pattern)
  }

  /**
   * Routes a valid pattern, or counts one more reference to it.
   * The number of a group is used again after its last reference is gone.
   */
  add(pattern: string): Route {
    const known = this.#entries.get(pattern)
    if (known !== undefined) {
      known.references++
      return known
    }
    let node = this.#root
    for (const word of triePath(pattern)) node = this.#childOf(node, word)
    const group = this.#freeGroups.pop() ?? (this.#groupCount++ as GroupId)
    if (node.groups === undefined) node.groups = [group]
    else node.groups.push(group)
    const entry = { pattern, group, node, references: 1 }
    this.#entries.set(pattern, entry)
    this.#invalidate(pattern)
    return entry
  }

  /** Takes one reference back; returns whether that was the last one. A pattern that is not routed is left alone. */
  remove(pattern: string): boolean {
    const entry = this.#entries.get(pattern)
    if (entry === undefined || --entry.references > 0) return false
    this.#entries.delete(pattern)
    const { node, group } = entry
    const rest = node.groups?.filter((other) => other !== group) ?? []
    node.groups = rest.length > 0 ? rest : undefined
    this.#prune(node)
    this.#freeGroups.push(group)
    this.#invalidate(pattern)
    return true
  }

  /** The groups whose patterns match the key, each once, in no order. The array is shared: it must not be changed. */
  match(key: string): readonly GroupId[] {
    const cached = this.#cache.get(key)
    if (cached !== undefined) return cached
    const groups = this.#walk(key)
    this.#cache.set(key, groups)
    return groups
  }

  #walk(key: string): readonly GroupId[] {
    this.#active.length = 0
    enter(this.#root, this.#active, ++this.#step)
    for (const word of key.split('.')) {
      const step = ++this.#step
      const next = this.#next
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
      node.star ??= new TrieNode(node, word)
      return node.star
    }
    if (word === '#') {
      node.hash ??= new TrieNode(node, word)
      return node.hash
    }
    const known = node.child(word)
    if (known !== undefined) return known
    const child = new TrieNode(node, word)
    node.adopt(child)
    this.#words.add(word)
    if (this.#words.isFull) this.#words = this.#words.grown(wordsBelow(this.#root))
    return child
  }

  /** Takes nodes that lead to no pattern out of the trie, from the leaf up. */
  #prune(leaf: TrieNode): void {
    let node = leaf
    while (node.parent !== undefined && node.isBarren) {
      const { parent, word } = node
      if (word === '*') parent.star = undefined
      else if (word === '#') parent.hash = undefined
      else {
        parent.disown(node)
        this.#words.delete(word)
      }
      node = parent
    }
  }

  /** A pattern without a wildcard changes the answer for one key alone. */
  #invalidate(pattern: string): void {
    if (pattern.includes('*') || pattern.includes('#')) this.#cache.clear()
    else this.#cache.delete(pattern)
  }
}

/** Adds a node, and the `#` below it (which may match no word at all), to the nodes that match so far. */
function enter(node: TrieNode | undefined, nodes: TrieNode[], step: number): void {
  while (node !== undefined && node.step !== step) {
    node.step = step
    nodes.push(node)
    node = node.hash
  }
}

/**
 * The words of a pattern in the order of the trie: a run of wildcards keeps its `*`s and at most one `#`, last.
 * `#.#` means `#`, and `#.*` means `*.#`; without this, `#.#.#…` would make a chain of nodes that all match.
 */
function triePath(pattern: string): string[] {
  const path: string[] = []
  let hashWaits = false
  for (const word of pattern.split('.')) {
    if (word === '#') {
      hashWaits = true
      continue
    }
    if (hashWaits && word !== '*') {
      path.push('#')
      hashWaits = false
    }
    path.push(word)
  }
  if (hashWaits) path.push('#')
  return path
}

/** The exact words of all nodes below, each as often as it stands there. */
function* wordsBelow(root: TrieNode): Generator<string> {
  const nodes = [root]
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
    for (const child of [node.only, ...(node.children?.values() ?? [])]) {
      if (child === undefined) continue
      yield child.word
      nodes.push(child)
    }
    for (const child of [node.star, node.hash]) if (child !== undefined) nodes.push(child)
  }
}
