import type { GroupId } from '../ports/transport.js'

/** A node of the trie: the words of a pattern up to here, wildcards included. */
export class TrieNode {
  readonly parent: TrieNode | undefined
  readonly word: string
  /** The only child by exact word: a map would take more memory than the rest of the node. */
  only: TrieNode | undefined
  /** Children by exact word, if there are several. */
  children: Map<string, TrieNode> | undefined
  star: TrieNode | undefined
  hash: TrieNode | undefined
  /** Groups of the patterns that end here: one per variant, and of each pattern with the same meaning (`#.*`, `*.#`). */
  groups: GroupId[] | undefined
  /** The last step that entered this node: a match enters a node at most once per word. */
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

  /** No pattern ends here or below. */
  get isBarren(): boolean {
    return [this.groups, this.only, this.children, this.star, this.hash].every((part) => part === undefined)
  }
}

/** Adds a node to the active nodes, and the `#` below it, which may match no word. */
export function enter(node: TrieNode | undefined, nodes: TrieNode[], step: number): void {
  while (node !== undefined && node.step !== step) {
    node.step = step
    nodes.push(node)
    node = node.hash
  }
}

/** The exact words of all nodes below, with repetitions. */
export function* wordsBelow(root: TrieNode): Generator<string> {
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
