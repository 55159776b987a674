import type { GapReason } from 'webmq-client/protocol'
import type { Broker, InboundMessage, Position, ReadRange } from '../ports/broker.js'
import { andThen, type MaybePromise } from '../ports/maybe-promise.js'
import { isAfter, parsePosition } from '../ports/position.js'
import type { Capture } from './captures.js'

/** What a request says about the log: nothing, or where it wants to begin and how much it wants. */
export interface RangeOptions {
  readonly since?: string | undefined
  readonly rewindMs?: number | undefined
  readonly last?: number | undefined
  /** At most so many of them, the oldest. */
  readonly limit?: number | undefined
}

/** A page of what the log holds of what was asked for. */
export interface Replay {
  /** Oldest first. */
  readonly messages: readonly InboundMessage[]
  /** Place up to which the messages are complete; absent when the broker keeps no log. */
  readonly position?: Position
  /** Why messages may be missing. */
  readonly gap?: GapReason
  /** There is more after `position`, to be asked for when this was read [P-6.9]. */
  readonly hasMore: boolean
}

/** Messages of a page: what is encoded and sent in one go, so that a long replay delays nobody else. */
export const MAX_PAGE_MESSAGES = 500
/** What a message costs beside its payload: header and key, generously. */
const MESSAGE_OVERHEAD_BYTES = 128

/**
 * Reads the first page of what a request asks for; when it asks for nothing, only the end of the log.
 * @throws {WebMQError} `E_POSITION_INVALID`, and what {@link Broker.read} throws.
 */
export function readLog(
  broker: Pick<Broker, 'capabilities' | 'read' | 'position'>,
  options: RangeOptions,
  pattern: string,
): MaybePromise<Replay> {
  if (!broker.capabilities.history)
    return isRangeAsked(options)
      ? { messages: [], gap: 'no-history', hasMore: false }
      : { messages: [], hasMore: false }
  if (!isRangeAsked(options))
    return andThen(broker.position(), (position) =>
      position === undefined ? { messages: [], hasMore: false } : { messages: [], position, hasMore: false },
    )
  return andThen(broker.read(rangeOf(options), [pattern]), ({ isPartial, ...result }) => ({
    ...result,
    hasMore: isPartial,
  }))
}

/** Adds what came live while the log was read, so that what follows is live without a hole. */
export function withCaptured(replay: Replay, capture: Capture, isAsked: boolean): Replay {
  const { position, hasMore } = replay
  // What is still to come from the log has the captured messages too.
  if (position === undefined || hasMore || capture.messages.length === 0) return replay
  const later = capture.messages.filter(
    (message) => message.position !== undefined && isAfter(message.position, position),
  )
  const end = later.at(-1)?.position ?? position
  if (!isAsked) return { ...replay, position: end }
  if (capture.hasOverflowed) return { ...replay, hasMore: true }
  return { ...replay, messages: [...replay.messages, ...later], position: end }
}

/** Takes bytes that are about to be sent, whether there are as many or, when it is forced, not. */
export type TakeBytes = (byteCount: number, isForced: boolean) => boolean

/** Keeps as many of the oldest messages as there are bytes for, one at least, and says that there are more. */
export function limitReplay(replay: Replay, takeBytes: TakeBytes): Replay {
  const { messages } = replay
  let end = 0
  while (end < messages.length && takeBytes(byteCountOf(messages[end]), end === 0)) end++
  if (end === messages.length) return replay
  const kept = messages.slice(0, end)
  const position = kept.at(-1)?.position
  return position === undefined ? replay : { ...replay, messages: kept, position, hasMore: true }
}

/** Keeps as many of the newest messages as there are bytes for, one at least. */
export function limitNewest(replay: Replay, takeBytes: TakeBytes): Replay {
  const { messages } = replay
  let from = messages.length
  while (from > 0 && takeBytes(byteCountOf(messages[from - 1]), from === messages.length)) from--
  return from === 0 ? replay : { ...replay, messages: messages.slice(from), hasMore: true }
}

/** Whether the request asks for messages at all. */
export function isRangeAsked({ since, last, rewindMs, limit }: RangeOptions): boolean {
  return since !== undefined || last !== undefined || rewindMs !== undefined || limit !== undefined
}

function byteCountOf(message: InboundMessage | undefined): number {
  return (message?.payload.length ?? 0) + MESSAGE_OVERHEAD_BYTES
}

function rangeOf({ since, last, rewindMs, limit = MAX_PAGE_MESSAGES }: RangeOptions): ReadRange {
  return {
    ...(since === undefined ? undefined : { since: parsePosition(since) }),
    ...(last === undefined ? undefined : { last }),
    ...(rewindMs === undefined ? undefined : { rewindMs }),
    limit: Math.min(limit, MAX_PAGE_MESSAGES),
  }
}
