import {
  capabilitiesOf,
  type Link,
  type LinkContext,
  type LinkDriver,
  type LinkEvents,
  limitedSignal,
} from 'webmq-server/brokers'
import type { BrokerCapabilities, HistoryOptions } from 'webmq-server/ports'
import { parseAddress, type RabbitmqAddress } from './address.js'
import { connectError } from './errors.js'
import { RabbitmqLink } from './link.js'
import { LogCursor } from './log-cursor.js'

export interface RabbitmqLimits {
  /** Time for one of several hosts, so that a host that swallows everything leaves time for the others. Default 5,000. */
  readonly hostTimeoutMs: number
  /** Patterns that are bound one by one; with more of them a node binds everything. Default 2,000. */
  readonly maxPatterns: number
}

const DEFAULT_LIMITS: RabbitmqLimits = { hostTimeoutMs: 5_000, maxPatterns: 2_000 }

/**
 * Nodes meet at a durable topic exchange with the name of the namespace. Keys and patterns are those of AMQP 0-9-1, so
 * any program that speaks it can publish there and bind queues of its own.
 */
export class RabbitmqDriver implements LinkDriver {
  readonly linkVersion = 1
  readonly name = 'rabbitmq'
  readonly takesBundles = false
  readonly capabilities: BrokerCapabilities
  readonly address: string
  #address: RabbitmqAddress
  readonly #history: HistoryOptions
  readonly #cursor = new LogCursor()
  readonly #sizes = { maxBytes: Number.POSITIVE_INFINITY }
  readonly #limits: RabbitmqLimits
  /** The host to try first: the one that worked last. */
  #first = 0

  /** @throws {WebMQError} `E_OPTION_INVALID`. */
  constructor(address: string, history: HistoryOptions, limits: Partial<RabbitmqLimits> = {}) {
    this.#address = parseAddress(address)
    this.address = this.#address.text
    this.#history = history
    this.#limits = { ...DEFAULT_LIMITS, ...limits }
    // Messages of two nodes may reach the queues of two others in either order. Only the log has one order.
    this.capabilities = capabilitiesOf(history, false)
  }

  setAddress(address: string): void {
    this.#address = parseAddress(address)
  }

  async connect(context: LinkContext, events: LinkEvents, signal: AbortSignal): Promise<Link> {
    const { hosts } = this.#address
    const failures: ReturnType<typeof connectError>[] = []
    for (let tried = 0; tried < hosts.length && !signal.aborted; tried++) {
      const index = (this.#first + tried) % hosts.length
      const host = hosts[index]
      if (host === undefined) continue
      using limit = hosts.length === 1 ? undefined : limitedSignal(signal, this.#limits.hostTimeoutMs)
      try {
        const options = {
          address: this.#address,
          host,
          context,
          events,
          history: this.#history,
          cursor: this.#cursor,
          maxPatterns: this.#limits.maxPatterns,
          sizes: this.#sizes,
        }
        const link = await RabbitmqLink.open(options, limit?.signal ?? signal)
        this.#first = index
        return link
      } catch (error) {
        failures.push(connectError(error, `${host.hostname}:${host.port}`))
      }
    }
    // A host that did not refuse is worth another try.
    const failure = failures.find(({ code }) => code !== 'E_BROKER_REFUSED') ?? failures[0]
    throw failure ?? signal.reason
  }
}
