import type { Deadline } from '../../kernel/base/deadlines.js'
import type { Deferred } from '../../kernel/base/deferred.js'
import type { Asked, HandOverMessage } from './group-message.js'
import type { QueueGroup } from './known-groups.js'

/** A message or a request that waits for the answer of another node. */
export interface PendingHandOver {
  readonly number: number
  readonly group: QueueGroup
  readonly message: HandOverMessage
  readonly asked: Asked | undefined
  /** Who hands it over is told by then. */
  readonly untilMs: number
  /** Nodes that had no member for it. */
  readonly excluded: Set<string>
  /** Nodes that were sent it, and have not answered. One may have handed it over. */
  readonly sentTo: Set<string>
  /** The node whose answer it waits for, or that it waits to hear of; empty: none, it waits to hear of members. */
  node: string
  /** The term of the node that it was sent with. */
  term: number | undefined
  /** The node does not answer: it is sent again once that is heard. */
  isWaiting: boolean
  /** It has waited for what this node missed while it was cut off. */
  isLast: boolean
  /** A node has members that take no more at present. */
  isFull: boolean
  deadline: Deadline | undefined
  readonly outcome: Deferred<string | undefined>
}
