import type { BrokerCapabilities } from '../../ports/broker.js'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { hasHistory } from '../log/history-log.js'
import { limitedSignal } from '../remote/limited-signal.js'
import type { Link, LinkContext, LinkDriver, LinkEvents } from '../remote/link.js'
import { parseAddress, type RabbitmqAddress } from './address.js'
import { connectError } from './errors.js'
import { type LinkLog, RabbitmqLink } from './link.js'
import { LogBookmark } from './log-bookmark.js'

/** What one of several hosts gets, so that one that swallows everything does not use up the time of all. */
const HOST_TIMEOUT_MS = 5_000

/**
 * Nodes meet at a durable topic exchange that is named as the namespace; keys and patterns are those of AMQP 0-9-1. Anything that speaks it can publish
 * there, and bind queues of its own.
 */
export class RabbitmqDriver implements LinkDriver {
  readonly name = 'rabbitmq'
  readonly takesBundles = false
  /** RabbitMQ confirms without a word about the place. */
  readonly confirmsByLog = true
  readonly capabilities: BrokerCapabilities
  /** A queue gets a message once, however many of its bindings match. */
  readonly mayRepeat = false
  readonly address: string
  readonly #address: RabbitmqAddress
  readonly #log: LinkLog
  /** The host to try first: the one that worked last. */
  #first = 0

  /** @throws {WebMQError} `E_OPTION_INVALID`. */
  constructor(address: string, history: HistoryOptions) {
    this.#address = parseAddress(address)
    this.address = this.#address.text
    this.#log = { history, bookmark: new LogBookmark() }
    this.capabilities = {
      history: hasHistory(history),
      // Messages of two nodes may come into the queues of two others in either order; those of the log may not.
      ordered: false,
      sharedLog: hasHistory(history),
      confirms: true,
      queueGroups: false,
      durable: hasHistory(history),
      manyNodes: true,
    }
  }

  async connect(context: LinkContext, events: LinkEvents, signal: AbortSignal): Promise<Link> {
    const { hosts } = this.#address
    const failures: ReturnType<typeof connectError>[] = []
    for (let tried = 0; tried < hosts.length && !signal.aborted; tried++) {
      const index = (this.#first + tried) % hosts.length
      const host = hosts[index]
      if (host === undefined) continue
      const limit = hosts.length === 1 ? undefined : limitedSignal(signal, HOST_TIMEOUT_MS)
      try {
        const link = await RabbitmqLink.open(this.#address, host, context, this.#log, events, limit?.signal ?? signal)
        this.#first = index
        return link
      } catch (error) {
        failures.push(connectError(error, `${host.hostname}:${host.port}`))
      } finally {
        limit?.release()
      }
    }
    // One that may take us yet is worth another try.
    const failure = failures.find(({ code }) => code !== 'E_BROKER_REFUSED') ?? failures[0]
    throw failure ?? signal.reason
  }
}
