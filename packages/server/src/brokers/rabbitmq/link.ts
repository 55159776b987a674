import { addAbortListener } from 'node:events'
import { WebMQError } from 'webmq-client/protocol'
import type { HistoryOptions, HistoryRules } from '../../ports/history-rules.js'
import { hasHistory } from '../log/history-log.js'
import type { Link, LinkContext, LinkEvents, LinkMessage } from '../remote/link.js'
import type { RabbitmqAddress, RabbitmqHost } from './address.js'
import { AmqpConnection } from './connection.js'
import { Consumer } from './consumer.js'
import type { LogCursor } from './log-cursor.js'
import { LogFollow } from './log-follow.js'
import { Publisher } from './publisher.js'

export interface RabbitmqLinkOptions {
  readonly address: RabbitmqAddress
  readonly host: RabbitmqHost
  readonly context: LinkContext
  readonly history: HistoryOptions
  /** The node's, over all its links. */
  readonly cursor: LogCursor
  /** Patterns that are bound one by one; with more of them the node binds everything. */
  readonly maxPatterns: number
}

/**
 * Two connections to one broker, one to publish and one to consume. The end of either, or of a channel,
 * ends the link: a link is never mended.
 */
export class RabbitmqLink implements Link {
  readonly options: RabbitmqLinkOptions
  readonly events: LinkEvents
  /** Rules of the log; their messages come from the log. Absent without a log. */
  readonly logged: HistoryRules | undefined
  readonly #onLost: (cause: Error) => void
  readonly #connections: AmqpConnection[] = []
  publisher: Publisher | undefined
  consumer: Consumer | undefined
  #follow: LogFollow | undefined
  #isOpen = false
  #lostCause: Error | undefined
  #isClosed = false

  static async open(options: RabbitmqLinkOptions, events: LinkEvents, signal: AbortSignal): Promise<RabbitmqLink> {
    const link = new RabbitmqLink(options, events)
    using _listener = addAbortListener(signal, () => link.#abort())
    try {
      await link.#open(signal)
      if (link.#lostCause !== undefined) throw link.#lostCause
      signal.throwIfAborted()
      link.#isOpen = true
      return link
    } catch (error) {
      link.destroy()
      // Pending calls only report that no answer will come.
      throw link.#lostCause ?? error
    }
  }

  private constructor(options: RabbitmqLinkOptions, events: LinkEvents) {
    this.options = options
    const { history } = options
    this.logged = hasHistory(history) ? history.history : undefined
    this.events = {
      ...events,
      lost: (cause) => this.#lose(cause),
      blocked: (isBlocked, reason) => {
        if (isBlocked) this.consumer?.bindings.giveUpMarkers()
        events.blocked(isBlocked, reason)
      },
    }
    this.#onLost = events.lost
  }

  async bind(pattern: string): Promise<void> {
    await this.consumer?.bind(pattern)
  }

  async unbind(pattern: string): Promise<void> {
    await this.consumer?.unbind(pattern)
  }

  get log(): LogFollow | undefined {
    return this.#follow
  }

  publish(message: LinkMessage): void {
    this.publisher?.publish(message)
  }

  async close(): Promise<void> {
    this.#end()
    await Promise.all(this.#connections.map((connection) => connection.close()))
  }

  destroy(): void {
    this.#end()
    for (const connection of this.#connections) connection.destroy()
  }

  async #open(signal: AbortSignal): Promise<void> {
    // Both are waited for, so that none is established after the link was given up.
    const results = await Promise.allSettled([this.#connect('publishes', signal), this.#connect('consumes', signal)])
    for (const result of results) if (result.status === 'rejected') throw result.reason
    const [publishing, consuming] = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    if (publishing === undefined || consuming === undefined) return
    this.publisher = await Publisher.open(publishing, this)
    this.consumer = await Consumer.open(consuming, this)
    if (this.logged !== undefined) this.#follow = await LogFollow.open(publishing, consuming, this)
  }

  async #connect(purpose: string, signal: AbortSignal): Promise<AmqpConnection> {
    const connection = await AmqpConnection.open(this.options, purpose, signal, this.#lose)
    this.#connections.push(connection)
    return connection
  }

  readonly #lose = (cause: Error): void => {
    if (this.#lostCause !== undefined || this.#isClosed) return
    this.#lostCause = cause
    this.#stop()
    if (this.#isOpen) this.#onLost(new WebMQError('E_BROKER_UNAVAILABLE', { detail: cause.message, cause }))
  }

  #abort(): void {
    this.#lose(new Error('no connection in time'))
    for (const connection of this.#connections) connection.destroy()
  }

  #stop(): void {
    this.publisher?.stop()
    this.consumer?.stop()
    this.#follow?.stop()
  }

  #end(): void {
    this.#isClosed = true
    this.#stop()
  }
}
