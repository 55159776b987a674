import { encodeMessageFrame, encodeServerMessage } from 'webmq-client/protocol'
import type { Deadlines } from '../deadlines.js'
import type { InboundMessage } from '../ports/broker.js'
import { formatPosition } from '../ports/position.js'
import type { ConnectionId, Transport } from '../ports/transport.js'
import { ReplayAllowance } from './allowance.js'
import { ReplayPacer } from './pacer.js'
import { isRangeAsked, limitNewest, limitReplay, type RangeOptions, type Replay } from './replay.js'

/** What a {@link ReplaySender} works with. */
export interface ReplaySenderContext {
  readonly transport: Pick<Transport, 'send'>
  readonly deadlines: Pick<Deadlines, 'set'>
  /** Replayed bytes that a connection may get at once, and again per second. */
  readonly maxReplayBytes: number
  /** Unix time in milliseconds; the clock of the deadlines. */
  readonly now: () => number
}

/** A `listen` or a `history`. */
export interface ReplayRequest extends RangeOptions {
  readonly id: string
  /** The pattern of the `listen`, or the key of the `history`. */
  readonly pattern: string
}

/** How an answer differs from that of other requests. */
export interface ReplayAnswer {
  /** The answer says `recovered`: nothing after `since` is missing. */
  readonly isRecovered?: boolean
  /** Sends the newest messages first, and drops the oldest when they are too many. */
  readonly isNewestFirst?: boolean
}

/**
 * Answers requests for messages of the log; one per node.
 *
 * Call `turn` before you read the log, then `send` with what you read. The answer and its messages are sent in one go:
 * nothing comes in between.
 */
export class ReplaySender {
  readonly #context: ReplaySenderContext
  readonly #pacer = new ReplayPacer()
  /** Only of connections that were sent messages of the log: idle connections cost nothing here. */
  readonly #allowances = new Map<ConnectionId, ReplayAllowance>()

  constructor(context: ReplaySenderContext) {
    this.#context = context
  }

  /** Resolves when the connection may get a page; `undefined` means now. */
  turn(connection: ConnectionId, { pattern, since }: Pick<ReplayRequest, 'pattern' | 'since'>): void | Promise<void> {
    const { now, deadlines } = this.#context
    const allowance = this.#allowances.get(connection)
    if (since !== undefined) allowance?.onAsked(pageOf(pattern, since), now())
    const waitMs = allowance?.waitMs(now()) ?? 0
    if (waitMs === 0) return this.#pacer.turn()
    return new Promise<void>((resolve) => {
      deadlines.set(now() + waitMs, resolve)
    }).then(() => this.#pacer.turn())
  }

  /**
   * Sends the answer and as many of the messages as the connection may get now. The connection MUST be open.
   * Returns whether this was the last page; otherwise the client asks for the next one.
   */
  send(connection: ConnectionId, request: ReplayRequest, replay: Replay, answer: ReplayAnswer = {}): boolean {
    const { transport } = this.#context
    const { isRecovered = false, isNewestFirst = false } = answer
    const limit = isNewestFirst ? limitNewest : limitReplay
    const { messages, position, gap, hasMore } = limit(replay, (byteCount, isForced) =>
      this.#allowanceOf(connection).take(byteCount, this.#context.now(), isForced),
    )
    const text = position === undefined ? undefined : formatPosition(position)
    const page = hasMore && text !== undefined ? pageOf(request.pattern, text) : undefined
    this.#allowances.get(connection)?.endPage(page, this.#context.now())
    const ok = encodeServerMessage({
      verb: 'ok',
      id: request.id,
      ...(text === undefined ? undefined : { position: text }),
      ...(isRecovered ? { recovered: true } : undefined),
      ...(gap === undefined ? undefined : { gap }),
      ...(isRangeAsked(request) ? { replayed: messages.length } : undefined),
      ...(hasMore ? { more: true } : undefined),
    })
    transport.send(connection, ok, false)
    for (const message of isNewestFirst ? messages.toReversed() : messages) this.#sendMessage(connection, message)
    return !hasMore
  }

  /** The connection has closed. */
  release(connection: ConnectionId): void {
    this.#allowances.delete(connection)
  }

  #allowanceOf(connection: ConnectionId): ReplayAllowance {
    let allowance = this.#allowances.get(connection)
    if (allowance === undefined) {
      allowance = new ReplayAllowance(this.#context.maxReplayBytes)
      this.#allowances.set(connection, allowance)
    }
    return allowance
  }

  #sendMessage(connection: ConnectionId, { key, position, payload, isBinary }: InboundMessage): void {
    this.#pacer.sent()
    this.#context.transport.send(connection, encodeMessageFrame(key, position, true, payload), isBinary)
  }
}

/** Names a page by its request and its end; a pattern holds no space. */
function pageOf(pattern: string, position: string): string {
  return `${pattern} ${position}`
}
