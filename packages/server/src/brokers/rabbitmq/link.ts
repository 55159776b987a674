import { WebMQError } from 'webmq-client/protocol'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { hasHistory } from '../log/history-log.js'
import type { Link, LinkContext, LinkEvents, LinkMessage, LogFollower, LogPlace } from '../remote/link.js'
import type { RabbitmqAddress, RabbitmqHost } from './address.js'
import { AmqpConnection, connectTo } from './amqp-connection.js'
import { Consumer } from './consumer.js'
import type { LogBookmark } from './log-bookmark.js'
import { LogFollow } from './log-follow.js'
import { Publisher } from './publisher.js'

/** The log, as far as a link needs to know it. */
export interface LinkLog {
  readonly history: HistoryOptions
  readonly bookmark: LogBookmark
}

/** Two connections to one broker, one to publish and one to consume. What ends either of them or a channel ends the link. */
export class RabbitmqLink implements Link {
  readonly #context: LinkContext
  readonly #events: LinkEvents
  readonly #log: LinkLog
  readonly #connections: AmqpConnection[] = []
  #publisher: Publisher | undefined
  #consumer: Consumer | undefined
  #follow: LogFollow | undefined
  #isOpen = false
  #lostCause: Error | undefined
  #closed: Promise<void> | undefined

  /** Connects to one host, and declares what a node needs. */
  static async open(
    address: RabbitmqAddress,
    host: RabbitmqHost,
    context: LinkContext,
    log: LinkLog,
    events: LinkEvents,
    signal: AbortSignal,
  ): Promise<RabbitmqLink> {
    const link = new RabbitmqLink(context, log, events)
    const abort = () => link.#abort()
    signal.addEventListener('abort', abort, { once: true })
    try {
      await link.#open(address, host, signal)
      if (link.#lostCause !== undefined) throw link.#lostCause
      signal.throwIfAborted()
      link.#isOpen = true
      return link
    } catch (error) {
      await link.close()
      // Calls that wait say no more than that there will be no answer.
      throw link.#lostCause ?? error
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  private constructor(context: LinkContext, log: LinkLog, events: LinkEvents) {
    this.#context = context
    this.#log = log
    this.#events = events
  }

  async bind(pattern: string): Promise<void> {
    await this.#consumer?.bind(pattern)
  }

  async unbind(pattern: string): Promise<void> {
    await this.#consumer?.unbind(pattern)
  }

  publish(message: LinkMessage): void {
    this.#publisher?.publish(message)
  }

  async follow(after: LogPlace | undefined, follower: LogFollower): Promise<void> {
    await this.#follow?.follow(after, follower)
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #open(address: RabbitmqAddress, host: RabbitmqHost, signal: AbortSignal): Promise<void> {
    const connect = async (purpose: string) => {
      const { namespace, node, heartbeatMs } = this.#context
      const name = `webmq-server ${namespace} ${node} ${purpose}`
      const connection = new AmqpConnection(await connectTo(address, host, { name, heartbeatMs }, signal), this.#lose)
      this.#connections.push(connection)
      return connection
    }
    // Both are waited for, so that none comes to be after the link was given up.
    const results = await Promise.allSettled([connect('publishes'), connect('consumes')])
    for (const result of results) if (result.status === 'rejected') throw result.reason
    const [publishing, consuming] = this.#connections
    if (publishing === undefined || consuming === undefined) return
    const { deliver, malformed, surplus, confirmed, refused, blocked } = bound(this.#events)
    const context = this.#context
    const lost = this.#lose
    const { history, bookmark } = this.#log
    const logged = hasHistory(history) ? history.history : undefined
    this.#publisher = await Publisher.open(
      publishing,
      { ...context, epoch: () => bookmark.epoch },
      { confirmed, refused, blocked, lost },
    )
    const consumer = await Consumer.open(consuming, context, logged, { deliver, malformed, surplus, lost })
    this.#consumer = consumer
    if (logged === undefined) return
    const heard = () => consumer.heard()
    const options = { publishing, consuming, context, history, bookmark }
    this.#follow = await LogFollow.open(options, { heard, deliver, malformed, surplus, lost })
  }

  readonly #lose = (cause: Error): void => {
    if (this.#lostCause !== undefined || this.#closed !== undefined) return
    this.#lostCause = cause
    this.#stop()
    if (this.#isOpen) this.#events.lost(new WebMQError('E_BROKER_UNAVAILABLE', { detail: cause.message, cause }))
  }

  #abort(): void {
    this.#lose(new Error('no connection in time'))
    for (const connection of this.#connections) connection.destroy()
  }

  #stop(): void {
    this.#publisher?.stop()
    this.#consumer?.stop()
    this.#follow?.stop()
  }

  async #close(): Promise<void> {
    this.#stop()
    await Promise.all(this.#connections.map((connection) => connection.close()))
  }
}

function bound(events: LinkEvents): LinkEvents {
  return {
    deliver: (delivery) => events.deliver(delivery),
    confirmed: (sequence, isCumulative) => events.confirmed(sequence, isCumulative),
    refused: (sequence, cause) => events.refused(sequence, cause),
    blocked: (isBlocked, reason) => events.blocked(isBlocked, reason),
    malformed: (detail) => events.malformed(detail),
    surplus: () => events.surplus(),
    lost: (cause) => events.lost(cause),
  }
}
