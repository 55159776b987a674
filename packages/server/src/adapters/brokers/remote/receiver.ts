import type { GapReason } from 'webmq-client/protocol'
import type { BrokerSink, Position, RefusedMessage } from '../../../kernel/ports/broker.js'
import type { DedupeOptions } from '../../../kernel/ports/dedupe-window.js'
import { inbound } from '../../../kernel/ports/messages.js'
import { isForLogAlone } from '../../../kernel/ports/roll-up.js'
import { DuplicateFilter } from '../dedupe/duplicate-filter.js'
import { decodeBundle } from './bundle.js'
import { EPHEMERAL_KEY, unwrapped } from './ephemeral.js'
import type { LinkDelivery, LinkSource } from './link.js'

/** Delivers each message that arrives over the links once, and counts messages that nobody wanted. */
export class Receiver {
  /** As in {@link BrokerStats}. */
  readonly counts = { receivedCount: 0, surplusCount: 0, malformedCount: 0 }
  readonly #options: DedupeOptions
  #duplicates: DuplicateFilter
  /** As in {@link LinkContext}. */
  node = ''
  #sink: BrokerSink | undefined

  constructor(options: DedupeOptions) {
    this.#options = options
    this.#duplicates = new DuplicateFilter(options)
  }

  start(node: string, sink: BrokerSink): void {
    this.node = node
    this.#sink = sink
    this.#duplicates = new DuplicateFilter(this.#options)
  }

  stop(): void {
    this.#sink = undefined
  }

  isOwn(source: LinkSource | undefined): source is LinkSource {
    return source?.node === this.node
  }

  /** A message that is not in the log. */
  deliver(delivery: LinkDelivery): void {
    if (delivery.key === EPHEMERAL_KEY) this.#deliverEphemeral(delivery)
    else this.#deliver(delivery)
  }

  #deliver(delivery: LinkDelivery): void {
    const { source, messageId } = delivery
    if (source?.isBundle === true) {
      this.#deliverBundle(delivery, source)
      return
    }
    if (isForLogAlone(delivery.attributes)) {
      this.surplus()
      return
    }
    this.counts.receivedCount++
    const nowMs = messageId === undefined ? 0 : performance.now()
    if (!this.#duplicates.has(delivery, nowMs) && this.give(delivery, undefined)) this.#duplicates.note(delivery, nowMs)
    else this.counts.surplusCount++
  }

  countLogged(isDuplicate: boolean): void {
    this.counts.receivedCount++
    if (isDuplicate) this.counts.surplusCount++
  }

  surplus(): void {
    this.counts.receivedCount++
    this.counts.surplusCount++
  }

  malformed(detail: string, pattern?: string): void {
    this.refused({ reason: 'malformed', pattern, detail })
  }

  /** As {@link BrokerSink.gap}. */
  gap(reason: GapReason, isAffected?: (pattern: string) => boolean): void {
    this.#sink?.gap(reason, isAffected)
  }

  refused(message: RefusedMessage): void {
    if (message.reason === 'malformed') this.counts.malformedCount++
    this.#sink?.refused(message)
  }

  #deliverEphemeral(delivery: LinkDelivery): void {
    const message = unwrapped(delivery)
    if (message !== undefined) this.#deliver(message)
    else {
      this.counts.receivedCount++
      this.malformed('an ephemeral message without its key')
    }
  }

  /** A message that is new on this node. @returns As {@link BrokerSink.deliver}. */
  give(delivery: LinkDelivery, position: Position | undefined): boolean {
    const { source } = delivery
    const publisher = this.isOwn(source) ? source.publisher : undefined
    return this.#sink?.deliver(inbound(delivery, position, publisher)) === true
  }

  #deliverBundle({ key, payload }: LinkDelivery, source: LinkSource): void {
    const messages = decodeBundle(key, payload)
    this.counts.receivedCount += messages?.length ?? 1
    if (messages === undefined) {
      this.malformed('a bundle that is cut short, or too large', key)
      return
    }
    let wantedCount = 0
    if (!this.#duplicates.has({ source }, 0)) {
      for (const message of messages) if (this.#sink?.deliver(message) === true) wantedCount++
    }
    if (wantedCount > 0) this.#duplicates.note({ source }, 0)
    this.counts.surplusCount += messages.length - wantedCount
  }
}
