import type { NodeMessage } from './node-message.js'

export interface NodeTable {
  readonly name: string
  /** Tells other nodes, in each lease, what this node has: a version, or a digest. */
  readonly mark: number | string
  /** Whether this node has what the others have, as far as it knows. */
  readonly isComplete: boolean
  /**
   * What another node has; `undefined` when it does not take part.
   * @param isGreeting The node has just become known, or may have missed messages.
   */
  compare(node: string, mark: unknown, isGreeting: boolean): void
  /** Takes a message of another node; returns whether it could be read. MUST NOT call the broker. */
  receive(message: NodeMessage): boolean
  /** A node is gone. @param hasLeft It has said so, and did not crash. */
  left(node: string, hasLeft: boolean): void
  /** Called at intervals: asks again for what has not come. */
  retry?(): void
  /** Messages were lost: asks again at once. */
  restart(): void
  stop(): void
}
