import { randomBytes } from 'node:crypto'
import type { Channel, ConsumeMessage } from 'amqplib'
import { hasHistory, type LinkEvents, Liveness } from 'webmq-server/brokers'
import type { HistoryRules } from 'webmq-server/ports'
import { Acks, type AmqpConnection, PREFETCH_COUNT, type RabbitmqLinkOptions, watchChannel } from './connection.js'
import { deliveryOf, keyOf } from './message-properties.js'
import type { Publisher } from './publisher.js'
import { BoundedBindings, QueueBindings, type QueueBindingsOptions } from './queue-bindings.js'
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
  readonly #events: LinkEvents
  /** Rules of the log; their messages come from the log. Absent without a log. */
  readonly #logged: HistoryRules | undefined
  readonly #queue: string
  readonly #emptied: QueueEmptied
  readonly liveness: Liveness
  #isStopped = false

  /** Declares the queue. The exchange must exist. */
  static async open(connection: AmqpConnection, options: RabbitmqLinkOptions, publisher: Publisher): Promise<Consumer> {
    const { events } = options
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
    const emptied = new QueueEmptied(() => channel.checkQueue(queue), PREFETCH_COUNT)
    const bound = { connection, queue, exchange: namespace, publisher, emptied, lost: events.lost }
    const consumer = new Consumer(channel, options, bound)
    const take = (message: ConsumeMessage | null) => {
      if (message === null) events.lost(new Error('its queue was deleted'))
      else consumer.#take(message)
    }
    const tellOverflow = () => {
      events.lost(new Error('the node did not keep up: its queue was full and has dropped messages'))
    }
    try {
      await channel.consume(queue, take, { noAck: false, exclusive: true })
      await channel.consume(overflow, tellOverflow, { noAck: true, exclusive: true })
    } catch (error) {
      consumer.stop()
      throw error
    }
    return consumer
  }

  private constructor(channel: Channel, options: RabbitmqLinkOptions, bound: Omit<QueueBindingsOptions, 'liveness'>) {
    const { context, events, history, maxPatterns } = options
    this.#channel = channel
    this.#acks = new Acks(channel)
    this.#events = events
    this.#logged = hasHistory(history) ? history.history : undefined
    this.#queue = bound.queue
    this.#emptied = bound.emptied
    this.liveness = new Liveness({
      intervalMs: context.heartbeatMs,
      probe: () => this.#probe(),
      silent: (detail) => events.lost(new Error(`consuming: ${detail}`)),
    })
    this.bindings = new QueueBindings({ ...bound, liveness: this.liveness })
    this.#patterns = new BoundedBindings(this.bindings, maxPatterns)
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
    return this.#logged?.covers(pattern) === true
  }

  #take(message: ConsumeMessage): void {
    if (this.#isStopped) return
    this.liveness.alive()
    this.#emptied.takenCount++
    this.#acks.add(message)
    if (this.bindings.takeMarker(message)) return
    const key = keyOf(message)
    // A broader pattern matches it too, but it comes from the log.
    if (key !== undefined && this.#logged?.ruleOf(key) !== undefined) {
      this.#events.surplus()
      return
    }
    const delivery = deliveryOf(message)
    if (delivery !== undefined) this.#events.deliver(delivery)
    else {
      const text = JSON.stringify(message.fields.routingKey)
      this.#events.malformed(`${text} is no key, or its text not valid UTF-8`, key)
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
