import { LogPace } from '../base/log-pace.js'
import type { Logger } from '../base/logger.js'
import type { InboundMessage, RefusalReason, RefusedMessage } from '../ports/broker.js'
import { inboundDefect, refusedMessage } from '../ports/inbound-check.js'
import { isReserved } from '../ports/reserved-keys.js'
import type { Delivery } from './delivery.js'

export interface RefusedMessagesContext {
  readonly maxPayloadBytes: number
  readonly delivery: Pick<Delivery, 'refused'>
  readonly logger: Pick<Logger, 'warn'>
  /** A clock that never goes back, in milliseconds. */
  readonly now?: () => number
}

/** Other programs may send any number of bad messages. */
const LOG_INTERVAL_MS = 1_000
/** Keys of other programs may be long, and are not checked. */
const MAX_LOGGED_CHARS = 1_000

/** Messages of the broker that must not reach clients: counted, logged at a bounded rate, and told as a gap. */
export class RefusedMessages {
  readonly #context: RefusedMessagesContext
  readonly #now: () => number
  readonly #counts: Record<RefusalReason, number> = { malformed: 0, 'too-large': 0, failed: 0 }
  readonly #pace = new LogPace(LOG_INTERVAL_MS)

  constructor(context: RefusedMessagesContext) {
    this.#context = context
    this.#now = context.now ?? (() => performance.now())
  }

  get counts(): Readonly<Record<RefusalReason, number>> {
    return { ...this.#counts }
  }

  /**
   * Delivers a message, or refuses it. Never throws: brokers call it from handlers of their libraries, where an error
   * would end the process.
   * @returns As {@link BrokerSink.deliver}. A refused message counts as delivered, so that its copies are not refused
   *   again.
   */
  deliver(message: InboundMessage, deliver: (message: InboundMessage) => boolean): boolean {
    const { key, payload } = message
    const { maxPayloadBytes } = this.#context
    const reason = inboundDefect(key, payload, maxPayloadBytes)
    if (reason === undefined) {
      try {
        return deliver(message)
      } catch (error) {
        this.add({
          reason: 'failed',
          pattern: key,
          detail: error instanceof Error ? (error.stack ?? '') : String(error),
        })
        return true
      }
    }
    this.add(refusedMessage(reason, key, payload, maxPayloadBytes))
    return true
  }

  /** As {@link BrokerSink.refused}. */
  add({ reason, pattern, detail }: RefusedMessage): void {
    this.#counts[reason]++
    this.#log(reason, pattern, detail)
    // Messages between servers have no listeners.
    if (pattern !== undefined && !isReserved(pattern)) this.#context.delivery.refused(pattern)
  }

  #log(reason: RefusalReason, pattern: string | undefined, detail: string): void {
    const others = this.#pace.take(1, this.#now())
    if (others === undefined) return
    const key = pattern?.slice(0, MAX_LOGGED_CHARS)
    this.#context.logger.warn(
      { reason, ...(key === undefined ? {} : { key }), detail: detail.slice(0, MAX_LOGGED_CHARS), others },
      'a message of the broker was refused',
    )
  }
}
