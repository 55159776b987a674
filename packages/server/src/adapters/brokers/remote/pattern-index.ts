/** A node of the trie of patterns; the words `*` and `#` are children like any other. */
interface IndexNode {
  readonly isHash: boolean
  /** {@link NO_CHILDREN} at the end of a pattern: a map takes more memory than the rest of a node. */
  children: Map<string, IndexNode>
  pattern: string | undefined
}

/**
 * A set of patterns that finds the ones that contain a given pattern, or are contained in it.
 *
 * It compares patterns as written, with `*` and `#` as words. Every result is right, but some containments are missed:
 * `*.#` contains `#.a`. Use it only where a miss is cheap.
 */
export class PatternIndex {
  readonly #root = createNode('')
  size = 0

  has(pattern: string): boolean {
    let node: IndexNode | undefined = this.#root
    for (const word of pattern.split('.')) node = node?.children.get(word)
    return node?.pattern !== undefined
  }

  /** Adding twice is a no-op. */
  add(pattern: string): void {
    let node = this.#root
    for (const word of pattern.split('.')) {
      const child = node.children.get(word) ?? createNode(word)
      if (node.children === NO_CHILDREN) node.children = new Map()
      node.children.set(word, child)
      node = child
    }
    if (node.pattern === undefined) this.size++
    node.pattern = pattern
  }

  /** Does nothing for a pattern that is not in the set. */
  delete(pattern: string): void {
    const words = pattern.split('.')
    const path = [this.#root]
    for (const word of words) {
      const child = path.at(-1)?.children.get(word)
      if (child === undefined) return
      path.push(child)
    }
    const last = path.pop()
    if (last?.pattern === undefined) return
    last.pattern = undefined
    this.size--
    let child = last
    for (let node = path.pop(); node !== undefined; child = node, node = path.pop()) {
      if (child.children.size > 0 || child.pattern !== undefined) return
      node.children.delete(words[path.length] ?? '')
    }
  }

  /** A pattern of the set that contains `inner` and is not `inner`; `undefined` if there is none. */
  containing(inner: string): string | undefined {
    let active = new Set<IndexNode>()
    enter(this.#root, active)
    for (const word of inner.split('.')) {
      const next = new Set<IndexNode>()
      for (const node of active) {
        if (node.isHash) enter(node, next)
        if (word === '#') continue
        if (word !== '*') enter(node.children.get(word), next)
        enter(node.children.get('*'), next)
      }
      active = next
    }
    for (const { pattern } of active) if (pattern !== undefined && pattern !== inner) return pattern
    return undefined
  }

  /**
   * The patterns of the set that `outer` contains, without `outer`. Cost: O(patterns that share the words before the
   * first wildcard of `outer`).
   */
  within(outer: string): string[] {
    const found: string[] = []
    collect(this.#root, outer.split('.'), new Set([0]), found)
    return found.filter((pattern) => pattern !== outer)
  }
}

/** Never changed. */
const NO_CHILDREN: Map<string, IndexNode> = new Map()

function createNode(word: string): IndexNode {
  return { isHash: word === '#', children: NO_CHILDREN, pattern: undefined }
}

/** Adds a node, and the `#` below it, which may match no word. */
function enter(node: IndexNode | undefined, nodes: Set<IndexNode>): void {
  while (node !== undefined && !nodes.has(node)) {
    nodes.add(node)
    node = node.children.get('#')
  }
}

/** @param indexes Where in `outer` a match may continue after the words that lead to `node`. */
function collect(node: IndexNode, outer: readonly string[], indexes: Set<number>, found: string[]): void {
  for (const index of indexes) if (outer[index] === '#') indexes.add(index + 1)
  if (node.pattern !== undefined && indexes.has(outer.length)) found.push(node.pattern)
  const only = onlyWord(outer, indexes)
  if (only !== undefined) {
    const child = node.children.get(only)
    if (child !== undefined) collect(child, outer, after(only, outer, indexes), found)
    return
  }
  for (const [word, child] of node.children) {
    const next = after(word, outer, indexes)
    if (next.size > 0) collect(child, outer, next, found)
  }
}

/** The one word that can come next; `undefined` when several can. */
function onlyWord(outer: readonly string[], indexes: ReadonlySet<number>): string | undefined {
  if (indexes.size !== 1) return undefined
  const [index = 0] = indexes
  const word = outer[index]
  return word === '*' || word === '#' ? undefined : word
}

/** Where a match may continue after one more word, which may be a wildcard. */
function after(word: string, outer: readonly string[], indexes: ReadonlySet<number>): Set<number> {
  const next = new Set<number>()
  for (const index of indexes) {
    const expected = outer[index]
    if (expected === '#') next.add(index)
    else if (expected !== undefined && word !== '#' && (expected === word || expected === '*')) next.add(index + 1)
  }
  return next
}
