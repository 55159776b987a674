import { addAbortListener } from 'node:events'
import { WebMQError } from 'webmq-client/protocol'
import { hasHistory, type Link, type LinkEvents, type LinkMessage } from 'webmq-server/brokers'
import { AmqpConnection, type RabbitmqLinkOptions } from './connection.js'
import { Consumer } from './consumer.js'
import { LogFollow } from './log-follow.js'
import { Publisher } from './publisher.js'

/**
 * Two connections to one broker, one to publish and one to consume. The end of either, or of a channel,
 * ends the link: a link is never mended.
 */
export class RabbitmqLink implements Link {
  readonly #options: RabbitmqLinkOptions
  readonly #onLost: (cause: Error) => void
  readonly #connections: AmqpConnection[] = []
  #publisher: Publisher | undefined
  #consumer: Consumer | undefined
  #follow: LogFollow | undefined
  #isOpen = false
  #lostCause: Error | undefined
  #isClosed = false

  static async open(options: RabbitmqLinkOptions, signal: AbortSignal): Promise<RabbitmqLink> {
    const link = new RabbitmqLink(options)
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

  private constructor(options: RabbitmqLinkOptions) {
    const { events } = options
    const blocked: LinkEvents['blocked'] = (isBlocked, reason) => {
      if (isBlocked) this.#consumer?.bindings.giveUpMarkers()
      events.blocked(isBlocked, reason)
    }
    this.#options = { ...options, events: { ...events, lost: this.#lose, blocked } }
    this.#onLost = events.lost
  }

  async bind(pattern: string): Promise<void> {
    await this.#consumer?.bind(pattern)
  }

  async unbind(pattern: string): Promise<void> {
    await this.#consumer?.unbind(pattern)
  }

  get log(): LogFollow | undefined {
    return this.#follow
  }

  publish(message: LinkMessage): void {
    this.#publisher?.publish(message)
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
    const options = this.#options
    this.#publisher = await Publisher.open(publishing, options)
    this.#consumer = await Consumer.open(consuming, options, this.#publisher)
    const { liveness } = this.#consumer
    if (hasHistory(options.history)) this.#follow = await LogFollow.open(publishing, consuming, options, liveness)
  }

  async #connect(purpose: string, signal: AbortSignal): Promise<AmqpConnection> {
    const connection = await AmqpConnection.open(this.#options, purpose, signal, this.#lose)
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
    this.#publisher?.stop()
    this.#consumer?.stop()
    this.#follow?.stop()
  }

  #end(): void {
    this.#isClosed = true
    this.#stop()
  }
}
