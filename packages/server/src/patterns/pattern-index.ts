/** A place in the trie of patterns; the words `*` and `#` are children like any other. */
interface IndexNode {
  readonly isHash: boolean
  readonly children: Map<string, IndexNode>
  /** What ends here. */
  pattern: string | undefined
}

/**
 * A set of patterns that tells which of them contain another, or are contained in it.
 *
 * It compares patterns as they are written, `*` and `#` as words: what it finds is so, and what it misses is one thing written in
 * two ways (`*.#` contains `#.a`, which does not show). For those whom a miss costs a little and no more.
 */
export class PatternIndex {
  readonly #root = createNode('')
  #size = 0

  get size(): number {
    return this.#size
  }

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
      node.children.set(word, child)
      node = child
    }
    if (node.pattern === undefined) this.#size++
    node.pattern = pattern
  }

  /** A pattern that is not there is left alone. */
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
    this.#size--
    let child = last
    for (let node = path.pop(); node !== undefined; child = node, node = path.pop()) {
      if (child.children.size > 0 || child.pattern !== undefined) return
      node.children.delete(words[path.length] ?? '')
    }
  }

  /** One of the patterns that contains `inner`, and is not it; `undefined` when there is none. */
  containing(inner: string): string | undefined {
    let reached = new Set<IndexNode>()
    reach(this.#root, reached)
    for (const word of inner.split('.')) {
      const next = new Set<IndexNode>()
      for (const node of reached) {
        if (node.isHash) reach(node, next)
        if (word === '#') continue
        if (word !== '*') reach(node.children.get(word), next)
        reach(node.children.get('*'), next)
      }
      reached = next
    }
    for (const { pattern } of reached) if (pattern !== undefined && pattern !== inner) return pattern
    return undefined
  }

  /** The patterns that are contained in `outer`, and are not it. Cost: O(patterns that begin like the words before its first wildcard). */
  within(outer: string): string[] {
    const found: string[] = []
    collect(this.#root, outer.split('.'), new Set([0]), found)
    return found.filter((pattern) => pattern !== outer)
  }
}

function createNode(word: string): IndexNode {
  return { isHash: word === '#', children: new Map(), pattern: undefined }
}

/** Adds a node, and the `#` below it, which may stand for no word. */
function reach(node: IndexNode | undefined, nodes: Set<IndexNode>): void {
  while (node !== undefined && !nodes.has(node)) {
    nodes.add(node)
    node = node.children.get('#')
  }
}

/** @param places Where in the words of `outer` one may stand after the words that lead to `node`. */
function collect(node: IndexNode, outer: readonly string[], places: Set<number>, found: string[]): void {
  for (const place of places) if (outer[place] === '#') places.add(place + 1)
  if (node.pattern !== undefined && places.has(outer.length)) found.push(node.pattern)
  const only = onlyWord(outer, places)
  if (only !== undefined) {
    const child = node.children.get(only)
    if (child !== undefined) collect(child, outer, after(only, outer, places), found)
    return
  }
  for (const [word, child] of node.children) {
    const next = after(word, outer, places)
    if (next.size > 0) collect(child, outer, next, found)
  }
}

/** The one word that can come next; `undefined` when several can. */
function onlyWord(outer: readonly string[], places: ReadonlySet<number>): string | undefined {
  if (places.size !== 1) return undefined
  const [place = 0] = places
  const word = outer[place]
  return word === '*' || word === '#' ? undefined : word
}

/** Where one may stand after one more word, which may be a wildcard. */
function after(word: string, outer: readonly string[], places: ReadonlySet<number>): Set<number> {
  const next = new Set<number>()
  for (const place of places) {
    const expected = outer[place]
    if (expected === '#') next.add(place)
    else if (expected !== undefined && word !== '#' && (expected === word || expected === '*')) next.add(place + 1)
  }
  return next
}
