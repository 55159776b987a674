import type { Deadlines } from '../base/deadlines.js'
import type { DedupeWindowOptions } from '../ports/dedupe-window.js'
import type { GroupMember, GroupMessage, RequestTicket } from './group-message.js'
import { HandOvers } from './hand-over.js'
import type { Slots } from './slots.js'
import type { TaskChannel } from './task-channel.js'

/** What {@link HandOvers} work with. */
export interface HandOversContext {
  /** Name of this node. */
  readonly node: string
  readonly channel: Pick<TaskChannel, 'send'>
  readonly slots: Pick<Slots, 'get'>
  readonly deadlines: Pick<Deadlines, 'set' | 'clear'>
  /** A monotonic clock, in milliseconds; the clock of the deadlines. */
  readonly now: () => number
  /** How long, and how many, message ids are remembered. */
  readonly dedupe: DedupeWindowOptions
  /** A node that has not answered within this time gets nothing until it is heard again. */
  readonly answerMs: number
  /** Memory of messages that wait for the answers of other nodes. */
  readonly maxPendingBytes: number
  /** Whether messages to other nodes pass at present. */
  readonly isUp: () => boolean
  /** A node does not answer. */
  readonly suspect: (node: string) => void
  /** Gives a request of a node its ticket. @param asked As the asking node knows it. */
  readonly ticketFor: (member: GroupMember, node: string, asked: Asked) => RequestTicket
  /** The member did not take the request. */
  readonly voidTicket: (ticket: RequestTicket) => void
  /** What members get instead of a message; `undefined`: nothing. A hook. */
  readonly delivered: (message: GroupMessage) => GroupMessage | undefined
  readonly onError: (error: unknown, text: string) => void
}

/** A message with what its hand-over needs. */
export interface HandOverMessage extends GroupMessage {
  readonly messageId?: string | undefined
}

/** A request, as the asking node knows it. */
export interface Asked {
  readonly number: number
  readonly withinMs: number
}
