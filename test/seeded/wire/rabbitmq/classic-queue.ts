import type { Table } from './fields.js'
import { after } from './lane.js'
import { type Delivery, type Message, Queue, type QueueClient, type QueueConsumer, type QueueOptions } from './queue.js'

interface ClassicOptions extends QueueOptions {
  /** Where messages go that this queue drops. */
  readonly deadLetter: (exchange: string, message: Message) => readonly Queue[]
  /** The smaller bound counts. */
  readonly policy: { readonly maxCount: number; readonly maxUnackedCount: number }
}

/** First in, first out. A full one drops its oldest messages: those that no consumer has yet. */
export class ClassicQueue extends Queue {
  readonly #options: ClassicOptions
  #ready: Delivery[] = []
  #readyBytes = 0
  /** The consumer whose turn it is. */
  #turn = 0

  constructor(options: ClassicOptions) {
    super(options)
    this.#options = options
  }

  get messageCount(): number {
    return this.#ready.length
  }

  enqueue(message: Message, client: QueueClient | undefined, tag: number): void {
    // Whoever deletes a queue wants no message of it: it counts as taken.
    if (this.isDeleted) {
      this.settle(client, tag, true)
      return
    }
    const { isDurable, timing, args } = this.options
    if (args['x-overflow'] === 'reject-publish' && this.#isOver(1, message.payload.length)) {
      this.settle(client, tag, false)
      return
    }
    const isWritten = isDurable && message.isPersistent
    after(isWritten ? timing.writeMs() : 0, () => this.settle(client, tag, true))
    this.#push({ message, isRedelivered: false })
    this.#give()
    while (this.#ready.length > 0 && this.#isOver(0, 0)) this.#drop()
  }

  acked(consumer: QueueConsumer, count: number): void {
    consumer.unackedCount -= count
    this.#give()
  }

  requeue(consumer: QueueConsumer, deliveries: readonly Delivery[]): void {
    consumer.unackedCount -= deliveries.length
    const again = deliveries.map(({ message }) => ({ message, isRedelivered: true }))
    this.#ready = [...again, ...this.#ready]
    this.#readyBytes += again.reduce((sum, { message }) => sum + message.payload.length, 0)
    this.#give()
  }

  copy(): Queue {
    const queue = new ClassicQueue(this.#options)
    for (const delivery of this.#ready) if (delivery.message.isPersistent) queue.#push(delivery)
    return queue
  }

  lose(_count: number): void {
    // What is persistent was written before it was confirmed.
  }

  protected begin(consumer: QueueConsumer, _args: Table): void {
    this.consumers.push(consumer)
    this.#give()
  }

  #push(delivery: Delivery): void {
    this.#ready.push(delivery)
    this.#readyBytes += delivery.message.payload.length
  }

  #shift(): Delivery | undefined {
    const delivery = this.#ready.shift()
    this.#readyBytes -= delivery?.message.payload.length ?? 0
    return delivery
  }

  #isOver(moreCount: number, moreBytes: number): boolean {
    const { args } = this.options
    const bound = (name: string) => (typeof args[name] === 'number' ? args[name] : Number.POSITIVE_INFINITY)
    const maxCount = Math.min(bound('x-max-length'), this.#options.policy.maxCount)
    return this.#ready.length + moreCount > maxCount || this.#readyBytes + moreBytes > bound('x-max-length-bytes')
  }

  #drop(): void {
    const dropped = this.#shift()
    const { args } = this.options
    const exchange = args['x-dead-letter-exchange']
    if (dropped === undefined || typeof exchange !== 'string') return
    const { message } = dropped
    const key = args['x-dead-letter-routing-key']
    const dead = { ...message, exchange, key: typeof key === 'string' ? key : message.key }
    for (const queue of this.#options.deadLetter(exchange, dead)) {
      queue.inbox.send(() => queue.enqueue(dead, undefined, 0))
    }
  }

  #give(): void {
    while (this.#ready.length > 0) {
      const consumer = this.#nextConsumer()
      const delivery = consumer && this.#shift()
      if (consumer === undefined || delivery === undefined) return
      if (!consumer.noAck) consumer.unackedCount++
      consumer.client.inbox.send(() => consumer.client.deliver(consumer, delivery))
    }
  }

  /** In turns, among those that may have one more. */
  #nextConsumer(): QueueConsumer | undefined {
    const { consumers } = this
    for (let tried = 0; tried < consumers.length; tried++) {
      const consumer = consumers[this.#turn++ % consumers.length]
      if (consumer === undefined) continue
      const { noAck, prefetchCount, unackedCount } = consumer
      const maxCount = Math.min(prefetchCount || Number.POSITIVE_INFINITY, this.#options.policy.maxUnackedCount)
      if (noAck || unackedCount < maxCount) return consumer
    }
    return undefined
  }
}
