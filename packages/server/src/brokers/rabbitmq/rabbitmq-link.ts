import { WebMQError } from 'webmq-client/protocol'
import type { Link, LinkContext, LinkEvents, LinkMessage } from '../remote/link.js'
import type { RabbitmqAddress, RabbitmqHost } from './address.js'
import { AmqpConnection, connectTo } from './amqp-connection.js'
import { Consumer } from './consumer.js'
import { Publisher } from './publisher.js'

/** Two connections to one broker, one to publish and one to consume. What ends either of them or a channel ends the link. */
export class RabbitmqLink implements Link {
  readonly #context: LinkContext
  readonly #events: LinkEvents
  readonly #connections: AmqpConnection[] = []
  #publisher: Publisher | undefined
  #consumer: Consumer | undefined
  #isOpen = false
  #lostCause: Error | undefined
  #closed: Promise<void> | undefined

  /** Connects to one host, and declares what a node needs. */
  static async open(
    address: RabbitmqAddress,
    host: RabbitmqHost,
    context: LinkContext,
    events: LinkEvents,
    signal: AbortSignal,
  ): Promise<RabbitmqLink> {
    const link = new RabbitmqLink(context, events)
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

  private constructor(context: LinkContext, events: LinkEvents) {
    this.#context = context
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
    const { deliver, malformed, confirmed, refused, blocked } = bound(this.#events)
    this.#publisher = await Publisher.open(publishing, this.#context, { confirmed, refused, blocked, lost: this.#lose })
    this.#consumer = await Consumer.open(consuming, this.#context, { deliver, malformed, lost: this.#lose })
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
    lost: (cause) => events.lost(cause),
  }
}
