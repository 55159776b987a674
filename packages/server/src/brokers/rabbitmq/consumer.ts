import { randomBytes } from 'node:crypto'
import type { Channel, ConsumeMessage } from 'amqplib'
import { Liveness } from '../remote/liveness.js'
import { Acks, type AmqpConnection, PREFETCH_COUNT, watchChannel } from './connection.js'
import type { RabbitmqLink } from './link.js'
import { deliveryOf, keyOf } from './message-properties.js'
import { BoundedBindings, QueueBindings } from './queue-bindings.js'
import { QueueEmptied } from './queue-emptied.js'

/** Limit of a queue whose node does not keep up: all nodes share the memory of the broker. A policy may set less. */
const MAX_QUEUE_BYTES = 128 * 1024 * 1024
/** Also bounds messages with empty payloads. */
const MAX_QUEUE_COUNT = 250_000
const QUEUE_ID_BYTES = 4

/**
 * The consuming half of a link: one queue of its own, which ends with its connection.
 *
 * A full queue drops its oldest messages without a word. So they are dead-lettered to a second queue, which keeps one.
 * A message there means that something was dropped: the link ends, and listeners are told of the gap. The broker has no order
 * between two queues: some messages behind the dropped ones may come before the gap.
 */
export class Consumer {
  readonly #channel: Channel
  readonly #acks: Acks
  readonly bindings: QueueBindings
  readonly #patterns: BoundedBindings
  readonly #link: RabbitmqLink
  readonly #queue: string
  readonly emptied: QueueEmptied
  readonly liveness: Liveness
  #isStopped = false

  /** Declares the queue. The exchange must exist. */
  static async open(connection: AmqpConnection, link: RabbitmqLink): Promise<Consumer> {
    const { events, options } = link
    const { namespace, node } = options.context
    const channel = await connection.model.createChannel()
    watchChannel(channel, events.lost)
    // Different for every link: the last one's queue exists until the broker notices that its connection is gone.
    const queue = `${namespace}.node.${node}.${randomBytes(QUEUE_ID_BYTES).toString('hex')}`
    const overflow = `${queue}.overflow`
    await declareQueue(channel, overflow, { 'x-max-length': 1 })
    await declareQueue(channel, queue, {
      'x-max-length-bytes': MAX_QUEUE_BYTES,
      'x-max-length': MAX_QUEUE_COUNT,
      'x-dead-letter-exchange': '',
      'x-dead-letter-routing-key': overflow,
    })
    await channel.prefetch(PREFETCH_COUNT)
    const consumer = new Consumer(connection, channel, queue, link)
    const take = (message: ConsumeMessage | null) => {
      if (message === null) events.lost(new Error('its queue was deleted'))
      else consumer.#take(message)
    }
    const tellOverflow = () => {
      events.lost(new Error('the node did not keep up: its queue was full and has dropped messages'))
    }
    await channel.consume(queue, take, { noAck: false, exclusive: true })
    await channel.consume(overflow, tellOverflow, { noAck: true, exclusive: true })
    return consumer
  }

  private constructor(connection: AmqpConnection, channel: Channel, queue: string, link: RabbitmqLink) {
    const { events, options } = link
    this.#channel = channel
    this.#acks = new Acks(channel)
    this.#link = link
    this.#queue = queue
    this.emptied = new QueueEmptied(() => channel.checkQueue(queue), PREFETCH_COUNT)
    this.bindings = new QueueBindings(connection, queue, link)
    this.#patterns = new BoundedBindings(this.bindings, options.maxPatterns)
    this.liveness = new Liveness({
      intervalMs: options.context.heartbeatMs,
      probe: () => this.#probe(),
      silent: (detail) => events.lost(new Error(`consuming: ${detail}`)),
    })
  }

  bind(pattern: string): Promise<void> {
    return this.#comesByLog(pattern) ? Promise.resolve() : this.#patterns.bind(pattern)
  }

  unbind(pattern: string): Promise<void> {
    return this.#comesByLog(pattern) ? Promise.resolve() : this.#patterns.unbind(pattern)
  }

  stop(): void {
    this.#isStopped = true
    this.liveness.stop()
    this.bindings.stop()
    this.#acks.stop()
  }

  #comesByLog(pattern: string): boolean {
    return this.#link.logged?.covers(pattern) === true
  }

  #take(message: ConsumeMessage): void {
    if (this.#isStopped) return
    this.liveness.alive()
    this.emptied.takenCount++
    this.#acks.add(message)
    if (this.bindings.takeMarker(message)) return
    const key = keyOf(message)
    // A broader pattern matches it too, but it comes from the log.
    if (key !== undefined && this.#link.logged?.ruleOf(key) !== undefined) {
      this.#link.events.surplus()
      return
    }
    const delivery = deliveryOf(message)
    if (delivery !== undefined) this.#link.events.deliver(delivery)
    else {
      const text = JSON.stringify(message.fields.routingKey)
      this.#link.events.malformed(`${text} is no key, or its text not valid UTF-8`, key)
    }
  }

  #probe(): void {
    this.#channel.checkQueue(this.#queue).then(
      () => this.liveness.alive(),
      // The channel has ended, which is reported where it is watched.
      () => undefined,
    )
  }
}

/** Not durable: it ends with the connection anyway. */
function declareQueue(channel: Channel, queue: string, limits: Readonly<Record<string, string | number>>) {
  return channel.assertQueue(queue, { exclusive: true, autoDelete: true, durable: false, arguments: limits })
}
