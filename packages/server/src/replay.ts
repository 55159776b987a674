import type { GapReason } from 'webmq-client/protocol'
import type { Broker, InboundMessage, Position, ReadRange } from './broker.js'
import type { Capture } from './captures.js'
import { andThen, type MaybePromise } from './maybe-promise.js'
import { isAfter, parsePosition } from './position.js'

/** What a request says about the log: nothing, `since` or `last`. */
export interface RangeOptions {
  readonly since?: string
  readonly last?: number
}

/** What the log holds of what was asked for. */
export interface Replay {
  /** Oldest first. */
  readonly messages: readonly InboundMessage[]
  /** Place up to which the messages are complete; absent when the broker keeps no log. */
  readonly position?: Position
  /** Why messages may be missing. */
  readonly gap?: GapReason
}

/** What a message costs beside its payload: header and key, generously. */
const MESSAGE_OVERHEAD_BYTES = 128

/**
 * Reads what a request asks for; without `since` and `last`, only the end of the log.
 * @throws {WebMQError} `E_POSITION_INVALID`, and what {@link Broker.read} throws.
 */
export function readLog(
  broker: Pick<Broker, 'capabilities' | 'read' | 'position'>,
  options: RangeOptions,
  pattern: string,
): MaybePromise<Replay> {
  if (!broker.capabilities.history)
    return isRangeAsked(options) ? { messages: [], gap: 'no-history' } : { messages: [] }
  const range = rangeOf(options)
  if (range !== undefined) return broker.read(range, [pattern])
  return andThen(broker.position(), (position) =>
    position === undefined ? { messages: [] } : { messages: [], position },
  )
}

/** Adds what came live while the log was read, so that what follows is live without a hole. */
export function withCaptured(replay: Replay, capture: Capture, isAsked: boolean): Replay {
  const { position } = replay
  if (position === undefined || capture.messages.length === 0) return replay
  const later = capture.messages.filter(
    (message) => message.position !== undefined && isAfter(message.position, position),
  )
  const end = later.at(-1)?.position ?? position
  if (!isAsked) return { ...replay, position: end }
  const messages = [...replay.messages, ...later]
  return capture.hasOverflowed
    ? { gap: 'limit', ...replay, messages, position: end }
    : { ...replay, messages, position: end }
}

/** Keeps the newest messages that fit into `maxBytes`; says `limit` when others were left out. */
export function limitReplay(replay: Replay, takeBytes: (byteCount: number) => boolean): Replay {
  const { messages } = replay
  let from = messages.length
  while (from > 0 && takeBytes((messages[from - 1]?.payload.length ?? 0) + MESSAGE_OVERHEAD_BYTES)) from--
  return from === 0 ? replay : { gap: 'limit', ...replay, messages: messages.slice(from) }
}

/** Whether the request asks for messages at all. */
export function isRangeAsked({ since, last }: RangeOptions): boolean {
  return since !== undefined || last !== undefined
}

function rangeOf({ since, last }: RangeOptions): ReadRange | undefined {
  if (since !== undefined) return { since: parsePosition(since) }
  return last === undefined ? undefined : { last }
}
