import { WebMQError } from 'webmq-client/protocol'
import type { MaybePromise } from '../../base/maybe-promise.js'
import { turnClock } from '../../base/turn-clock.js'
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
} from '../../ports/broker.js'
import type { BrokerStats } from '../../ports/broker-stats.js'
import { DedupeWindow } from '../../ports/dedupe-window.js'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { assertMessageId } from '../../ports/message-id.js'
import { accepted, inbound } from '../../ports/messages.js'
import { isForLogAlone } from '../../ports/roll-up.js'
import type { DuplicateFilterOptions } from '../dedupe/duplicate-filter.js'
import { newEpoch } from '../log/epoch.js'
import { HistoryLog, hasHistory, hasRetained } from '../log/history-log.js'

export interface MemoryBrokerOptions extends HistoryOptions, DuplicateFilterOptions {
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
  readonly #options: MemoryBrokerOptions
  readonly #now: () => number
  #sink: BrokerSink | undefined
  readonly #log: HistoryLog
  #dedupe: DedupeWindow
  #acceptedCount = 0

  constructor(options: MemoryBrokerOptions) {
    this.#options = options
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
    this.#log = new HistoryLog(options, turnClock())
    this.#dedupe = this.#createDedupe()
  }

  start(sink: BrokerSink): Promise<void> {
    this.#sink = sink
    this.#log.restart(newEpoch())
    this.#dedupe = this.#createDedupe()
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
    const { key, payload, messageId, publisher, attributes } = message
    if (messageId !== undefined) assertMessageId(messageId)
    const nowMs = messageId === undefined ? 0 : this.#now()
    if (messageId !== undefined && this.#dedupe.has(messageId, nowMs)) {
      return accepted(this.#dedupe.positionOf(messageId), true)
    }
    const isLogged = attributes?.isEphemeral !== true && this.#log.logs(key)
    // The message is logged at once: the reserved room is not held.
    if (isLogged) this.#log.retained?.reserve(key, payload.length, attributes)?.()
    const position = isLogged ? this.#log.append(message) : undefined
    this.#acceptedCount++
    if (messageId !== undefined) this.#dedupe.remember(messageId, position, nowMs)
    if (!isForLogAlone(attributes)) this.#sink?.deliver(inbound(message, position, publisher))
    return accepted(position, false)
  }

  read(range: ReadRange, patterns: readonly string[], reader?: Reader): MaybePromise<ReadResult> {
    this.#assertStarted()
    return this.#log.read(range, patterns, reader)
  }

  position(): Position | undefined {
    return this.capabilities.history && this.#sink !== undefined ? this.#log.position : undefined
  }

  stats(): BrokerStats {
    const counts = { ...NOTHING_ELSEWHERE, acceptedCount: this.#acceptedCount }
    const retained = this.#log.retained?.stats()
    return {
      ...counts,
      ...(this.capabilities.history ? { log: this.#log.stats() } : undefined),
      ...(retained === undefined ? undefined : { retained }),
    }
  }

  stop(): Promise<void> {
    const sink = this.#sink
    this.#sink = undefined
    sink?.status('down')
    return Promise.resolve()
  }

  #createDedupe(): DedupeWindow {
    return new DedupeWindow({ windowMs: this.#options.dedupeWindowMs, maxIds: this.#options.dedupeMaxIds })
  }

  #assertStarted(): void {
    if (this.#sink === undefined) throw new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'it is not started' })
  }
}
