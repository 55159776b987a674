import { WebMQError } from 'webmq-client/protocol'
import type { MaybePromise } from '../../../kernel/base/maybe-promise.js'
import type {
  Accepted,
  Broker,
  BrokerCapabilities,
  BrokerSink,
  OutboundMessage,
  Position,
  Reader,
  ReadRange,
  ReadResult,
} from '../../../kernel/ports/broker.js'
import type { BrokerStats } from '../../../kernel/ports/broker-stats.js'
import type { DedupeOptions } from '../../../kernel/ports/dedupe-window.js'
import type { HistoryOptions } from '../../../kernel/ports/history-rules.js'
import { assertMessageId } from '../../../kernel/ports/message-id.js'
import { accepted, inbound } from '../../../kernel/ports/messages.js'
import { isForLogAlone } from '../../../kernel/ports/roll-up.js'
import { hasHistory, hasRetained } from '../log/history-log.js'
import { OwnLog } from '../log/own-log.js'
import { turnClock } from './turn-clock.js'

export interface MemoryBrokerOptions extends HistoryOptions, DedupeOptions {
  /** A clock that never goes back, in milliseconds. */
  readonly now?: () => number
}

/** Messages stay in the process, and publishes never wait. */
const NOTHING_ELSEWHERE: BrokerStats = {
  acceptedCount: 0,
  rejectedCount: 0,
  receivedCount: 0,
  surplusCount: 0,
  malformedCount: 0,
  pendingCount: 0,
  pendingBytes: 0,
  lostCount: 0,
  behindCount: 0,
}

/** The embedded broker: one node, nothing to install, nothing kept after the process. Only long reads take time. */
export class MemoryBroker implements Broker {
  readonly name = 'memory'
  readonly capabilities: BrokerCapabilities
  readonly #now: () => number
  #sink: BrokerSink | undefined
  readonly #log: OwnLog
  #acceptedCount = 0

  constructor(options: MemoryBrokerOptions) {
    this.#now = options.now ?? (() => performance.now())
    this.capabilities = {
      history: hasHistory(options),
      retained: hasRetained(options),
      ordered: true,
      sharedLog: hasHistory(options),
      confirms: true,
      queueGroups: true,
      durable: false,
      manyNodes: false,
    }
    this.#log = new OwnLog(options, turnClock())
  }

  start(sink: BrokerSink): Promise<void> {
    this.#sink = sink
    this.#log.restart()
    sink.status('up')
    return Promise.resolve()
  }

  bind(_pattern: string): void {
    // Every message is delivered; the node knows who listens.
  }

  unbind(_pattern: string): void {
    // As in `bind`.
  }

  publish(message: OutboundMessage): Accepted {
    this.#assertStarted()
    const { messageId, publisher, attributes } = message
    if (messageId !== undefined) assertMessageId(messageId)
    const nowMs = messageId === undefined ? 0 : this.#now()
    if (messageId !== undefined && this.#log.ids.has(messageId, nowMs))
      return accepted(this.#log.ids.positionOf(messageId), true)
    const position = this.#log.record(message, messageId, nowMs)
    this.#acceptedCount++
    if (!isForLogAlone(attributes)) this.#sink?.deliver(inbound(message, position, publisher))
    return accepted(position, false)
  }

  read(range: ReadRange, patterns: readonly string[], reader?: Reader): MaybePromise<ReadResult> {
    this.#assertStarted()
    return this.#log.history.read(range, patterns, reader)
  }

  logs(key: string): boolean {
    return this.#log.history.logs(key)
  }

  retains(key: string): boolean {
    return this.#log.history.retains(key)
  }

  position(): Position | undefined {
    return this.capabilities.history && this.#sink !== undefined ? this.#log.history.position : undefined
  }

  stats(): BrokerStats {
    const counts = { ...NOTHING_ELSEWHERE, acceptedCount: this.#acceptedCount }
    const retained = this.#log.history.retained?.stats()
    return {
      ...counts,
      ...(this.capabilities.history ? { log: this.#log.history.stats() } : undefined),
      ...(retained === undefined ? undefined : { retained }),
    }
  }

  stop(): Promise<void> {
    const sink = this.#sink
    this.#sink = undefined
    sink?.status('down')
    return Promise.resolve()
  }

  #assertStarted(): void {
    if (this.#sink === undefined) throw new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'it is not started' })
  }
}
