import { assertSame } from './exchanges.js'
import type { Table } from './fields.js'
import type { Content } from './frames.js'
import { Lane, type Timing } from './lane.js'
import { Refusal } from './refusal.js'

export interface Message extends Content {
  readonly exchange: string
  readonly key: string
  readonly isPersistent: boolean
}

/** A message on its way to a consumer. */
export interface Delivery {
  readonly message: Message
  readonly isRedelivered: boolean
}

/** A channel, as queues see it. */
export interface QueueClient {
  /** Its process ends with its connection; what it has not acknowledged goes back to its queues. */
  readonly isOpen: boolean
  readonly inbox: Lane
  deliver(consumer: QueueConsumer, delivery: Delivery): void
  /** The queue has this message now, refuses it, or is gone. */
  settled(queue: Queue, tag: number, isTaken: boolean): void
  /** The queue is gone. */
  cancelled(consumer: QueueConsumer): void
}

export interface QueueConsumer {
  readonly client: QueueClient
  readonly queue: Queue
  readonly tag: string
  readonly noAck: boolean
  readonly isExclusive: boolean
  /** Messages that it may have without an acknowledgement; 0: any number. */
  readonly prefetchCount: number
  unackedCount: number
  /** Of a stream: where it reads next. */
  nextOffset: number
}

export interface QueueOptions {
  readonly name: string
  readonly isDurable: boolean
  readonly isAutoDelete: boolean
  /** The connection that alone may use it, and that it ends with. */
  readonly owner: object | undefined
  readonly args: Table
  readonly timing: Timing
  /** Whether a stream gives the bytes of a header back as text. */
  readonly hasTextHeaders: boolean
  /** Removes it from the broker, with its bindings. */
  readonly remove: (queue: Queue) => void
}

/** What classic queues and streams have in common. Its calls are made in the process of the queue. */
export abstract class Queue {
  readonly options: QueueOptions
  readonly consumers: QueueConsumer[] = []
  isDeleted = false
  /** What comes to its process, from whomever: in one order, as in one Erlang node. */
  readonly inbox: Lane

  constructor(options: QueueOptions) {
    this.options = options
    this.inbox = new Lane(options.timing.hopMs)
  }

  abstract readonly messageCount: number
  /** @param tag Of the confirm that the client waits for; 0: for none. */
  abstract enqueue(message: Message, client: QueueClient | undefined, tag: number): void
  abstract acked(consumer: QueueConsumer, count: number): void
  /** Messages come back, oldest first. */
  abstract requeue(consumer: QueueConsumer, deliveries: readonly Delivery[]): void
  /** One with what is on its disk. */
  abstract copy(): Queue
  /** Its newest entries are gone, if it is a stream. */
  abstract lose(count: number): void

  protected abstract begin(consumer: QueueConsumer, args: Table): void

  assertSame(isDurable: boolean, isExclusive: boolean, isAutoDelete: boolean, args: Table): void {
    const { options } = this
    const name = options.name
    assertSame('durable', name, isDurable, options.isDurable)
    assertSame('exclusive', name, isExclusive, options.owner !== undefined)
    assertSame('auto_delete', name, isAutoDelete, options.isAutoDelete)
    for (const arg of new Set([...Object.keys(args), ...Object.keys(options.args)])) {
      assertSame(arg, name, args[arg], options.args[arg])
    }
  }

  consume(consumer: QueueConsumer, args: Table): void {
    if (this.consumers.some(({ isExclusive }) => isExclusive) || (consumer.isExclusive && this.consumers.length > 0)) {
      throw new Refusal(403, `queue '${this.options.name}' in vhost '/' in exclusive use`)
    }
    this.begin(consumer, args)
  }

  cancel(consumer: QueueConsumer): void {
    const at = this.consumers.indexOf(consumer)
    if (at < 0) return
    this.consumers.splice(at, 1)
    if (this.options.isAutoDelete && this.consumers.length === 0) this.options.remove(this)
  }

  /** Its process ends. */
  end(): void {
    this.isDeleted = true
    for (const consumer of this.consumers.splice(0)) {
      consumer.client.inbox.send(() => consumer.client.cancelled(consumer))
    }
  }

  protected settle(client: QueueClient | undefined, tag: number, isTaken: boolean): void {
    if (client !== undefined && tag > 0) client.inbox.send(() => client.settled(this, tag, isTaken))
  }
}
