import type { GapReason } from 'webmq-client/protocol'
import { andThen, type MaybePromise } from '../base/maybe-promise.js'
import type { Broker, InboundMessage, Position, Reader, ReadRange } from '../ports/broker.js'
import { isAfter, parsePosition } from '../ports/position.js'
import type { StreamView } from '../ports/roll-up.js'

/** Which messages of the log a request asks for; none when all members are absent. */
export interface RangeOptions {
  readonly since?: string | undefined
  readonly before?: string | undefined
  readonly rewindMs?: number | undefined
  readonly last?: number | undefined
  /** Most messages to send; the oldest come first. */
  readonly limit?: number | undefined
  /** The last message of each key [P-17.1]. */
  readonly state?: boolean | undefined
  /** Default `messages`. */
  readonly view?: StreamView | undefined
}

/** One page of the messages that a request asked for. */
export interface Replay {
  /** Oldest first. */
  readonly messages: readonly InboundMessage[]
  /** The messages are complete up to here; absent when the broker keeps no log. */
  readonly position?: Position
  /** Older messages are no longer in the log, see {@link ReadResult.isCut}. */
  readonly isCut?: true
  readonly gap?: GapReason
  /** More messages follow `position`; the client asks for them once it has read these [P-6.9]. */
  readonly hasMore: boolean
}

/** Most messages of a page. A page is encoded and sent in one go, so a limit keeps long replays from delaying others. */
export const MAX_PAGE_MESSAGES = 500
/** Bytes of a message beside its payload: an upper estimate for header and key. */
const MESSAGE_OVERHEAD_BYTES = 128

/**
 * Reads the first page of what a request asks for. When it asks for nothing, returns the end of the log alone.
 * @throws {WebMQError} `E_POSITION_INVALID`, and the errors of {@link Broker.read}.
 */
export function readLog(
  broker: Pick<Broker, 'capabilities' | 'read' | 'position'>,
  options: RangeOptions,
  patterns: string | readonly string[],
  reader?: Reader,
): MaybePromise<Replay> {
  if (!broker.capabilities.history)
    return isRangeAsked(options)
      ? { messages: [], gap: 'no-history', hasMore: false }
      : { messages: [], hasMore: false }
  if (!isRangeAsked(options))
    return andThen(broker.position(), (position) =>
      position === undefined ? { messages: [], hasMore: false } : { messages: [], position, hasMore: false },
    )
  return andThen(
    broker.read(rangeOf(options), typeof patterns === 'string' ? [patterns] : patterns, reader),
    ({ isPartial, ...result }) => ({
      ...result,
      hasMore: isPartial,
    }),
  )
}

/** Estimated bytes of the message that a page begins with; 0 without messages. */
export function firstByteCount({ messages }: Replay, keepsNewest: boolean): number {
  return messages.length === 0 ? 0 : byteCountOf(messages.at(keepsNewest ? -1 : 0))
}

/** Appends the messages that arrived live while the log was read, so that nothing is missing before the next live message. */
export function withLive(
  replay: Replay,
  buffer: { readonly messages: readonly InboundMessage[]; readonly hasOverflowed: boolean },
  isAsked: boolean,
): Replay {
  const { position, hasMore } = replay
  // The pages that follow contain the buffered messages too.
  if (position === undefined || hasMore || buffer.messages.length === 0) return replay
  const later = buffer.messages.filter(
    (message) => message.position !== undefined && isAfter(message.position, position),
  )
  const end = later.at(-1)?.position ?? position
  if (!isAsked) return { ...replay, position: end }
  if (buffer.hasOverflowed) return { ...replay, hasMore: true }
  return { ...replay, messages: [...replay.messages, ...later], position: end }
}

/** Takes bytes that are about to be sent; `false` when fewer are left, unless forced. */
export type TakeBytes = (byteCount: number, isForced: boolean) => boolean

/** Keeps the oldest messages that fit, at least one, and sets `hasMore` when it drops any. */
export function limitReplay(replay: Replay, takeBytes: TakeBytes): Replay {
  const { messages } = replay
  let end = 0
  while (end < messages.length && takeBytes(byteCountOf(messages[end]), end === 0)) end++
  if (end === messages.length) return replay
  const kept = messages.slice(0, end)
  const position = kept.at(-1)?.position
  return position === undefined ? replay : { ...replay, messages: kept, position, hasMore: true }
}

/** Keeps the newest messages that fit, at least one, and sets `hasMore` when it drops any. */
export function limitNewest(replay: Replay, takeBytes: TakeBytes): Replay {
  const { messages } = replay
  let from = messages.length
  while (from > 0 && takeBytes(byteCountOf(messages[from - 1]), from === messages.length)) from--
  return from === 0 ? replay : { ...replay, messages: messages.slice(from), hasMore: true }
}

export function isRangeAsked({ since, before, last, rewindMs, limit, state }: RangeOptions): boolean {
  return state === true || [since, before, last, rewindMs, limit].some((option) => option !== undefined)
}

function byteCountOf(message: InboundMessage | undefined): number {
  return (message?.payload.length ?? 0) + MESSAGE_OVERHEAD_BYTES
}

function rangeOf({ since, before, last, rewindMs, limit = MAX_PAGE_MESSAGES, state, view }: RangeOptions): ReadRange {
  return {
    view,
    isState: state,
    since: since === undefined ? undefined : parsePosition(since),
    before: before === undefined ? undefined : parsePosition(before),
    last,
    rewindMs,
    limit: Math.min(limit, MAX_PAGE_MESSAGES),
  }
}
