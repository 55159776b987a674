import type { RabbitmqModel } from './broker.js'
import { Confirms } from './confirms.js'
import type { Connection } from './connection.js'
import { type Change, changeOf, queueOf } from './declarations.js'
import type { Content } from './frames.js'
import { isPersistent } from './frames.js'
import { after, Lane } from './lane.js'
import { type FieldsOf, idOf, type Method, type MethodName, type MethodOf } from './methods.js'
import type { Delivery, Queue, QueueClient, QueueConsumer } from './queue.js'
import { Refusal } from './refusal.js'

interface Unacked {
  readonly consumer: QueueConsumer
  readonly delivery: Delivery
}

const NO_ROUTE = 312

/**
 * A channel is a process of its own: what its connection reads, and what queues send it, comes in one order. While it waits for a change of the database or for a queue, all of that waits.
 */
export class Channel implements QueueClient {
  readonly #broker: RabbitmqModel
  readonly #connection: Connection
  readonly #number: number
  readonly inbox: Lane
  readonly #consumers = new Map<string, QueueConsumer>()
  readonly #unacked = new Map<number, Unacked>()
  readonly #held: (() => void)[] = []
  #confirms: Confirms | undefined
  #deliveryCount = 0
  #consumerCount = 0
  #prefetchCount = 0
  #isWaiting = false
  #isRunning = false
  isOpen = true

  constructor(broker: RabbitmqModel, connection: Connection, number: number) {
    this.#broker = broker
    this.#connection = connection
    this.#number = number
    this.inbox = new Lane(broker.timing.hopMs)
  }

  receive(method: Method, content: Content | undefined): void {
    this.#take(() => {
      try {
        if (method.name === 'basic.publish' && content !== undefined) this.#publish(method, content)
        else this.#handle(method)
      } catch (cause) {
        this.#refuse(cause, method)
      }
    })
  }

  deliver(consumer: QueueConsumer, delivery: Delivery): void {
    this.#take(() => {
      // It was cancelled: what was on its way goes back.
      if (this.#consumers.get(consumer.tag) !== consumer) {
        if (!consumer.noAck) consumer.queue.inbox.send(() => consumer.queue.requeue(consumer, [delivery]))
        return
      }
      const deliveryTag = ++this.#deliveryCount
      if (!consumer.noAck) this.#unacked.set(deliveryTag, { consumer, delivery })
      const { message, isRedelivered } = delivery
      const { exchange, key } = message
      const fields = { consumerTag: consumer.tag, deliveryTag, isRedelivered, exchange, key }
      this.#connection.sendContent(this.#number, 'basic.deliver', fields, message)
    })
  }

  settled(queue: Queue, tag: number, isTaken: boolean): void {
    this.#take(() => this.#confirms?.settled(queue, tag, isTaken))
  }

  cancelled(consumer: QueueConsumer): void {
    this.#take(() => {
      if (!this.#consumers.delete(consumer.tag)) return
      this.#send('basic.cancel', { tag: consumer.tag, isNoWait: true })
    })
  }

  /** Ends its process: what it has not acknowledged goes back, in its order. */
  end(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#held.length = 0
    const back = new Map<QueueConsumer, Delivery[]>()
    for (const { consumer, delivery } of this.#unacked.values()) {
      back.set(consumer, [...(back.get(consumer) ?? []), delivery])
    }
    for (const consumer of this.#consumers.values()) {
      consumer.queue.inbox.send(() => consumer.queue.cancel(consumer))
    }
    for (const [consumer, deliveries] of back) {
      consumer.queue.inbox.send(() => consumer.queue.requeue(consumer, deliveries))
    }
  }

  #take(call: () => void): void {
    if (!this.isOpen) return
    this.#held.push(call)
    this.#run()
  }

  #run(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    while (!this.#isWaiting && this.isOpen) {
      const next = this.#held.shift()
      if (next === undefined) break
      next()
    }
    this.#isRunning = false
  }

  /** Waits for something that goes on elsewhere, which calls back. */
  #wait(method: Method, begin: (done: (call: () => void) => void) => void): void {
    this.#isWaiting = true
    begin((call) => {
      if (!this.isOpen) return
      this.#isWaiting = false
      try {
        call()
      } catch (cause) {
        this.#refuse(cause, method)
      }
      this.#run()
    })
  }

  /** A change of the database: made after some time, answered after some more. */
  #change(method: Method, change: Change): void {
    const { changeMs } = this.#broker.timing
    this.#wait(method, (done) =>
      after(changeMs(), () => {
        if (!this.isOpen) return
        const answer = tried(change)
        after(changeMs(), () => done(() => answer()((name, fields) => this.#send(name, fields))))
      }),
    )
  }

  /** A call of the queue's process, which answers. */
  #call(method: Method, queue: Queue, call: () => () => void): void {
    this.#wait(method, (done) =>
      queue.inbox.send(() => {
        const answer = tried(call)
        this.inbox.send(() => done(() => answer()()))
      }),
    )
  }

  #handle(method: Method): void {
    const change = changeOf(this.#broker, this.#connection, method)
    if (change !== undefined) {
      this.#change(method, change)
      return
    }
    switch (method.name) {
      case 'channel.close':
        this.end()
        this.#connection.channelEnded(this.#number)
        this.#send('channel.close-ok', {})
        break
      case 'confirm.select':
        this.#confirms ??= new Confirms({
          confirmMs: this.#broker.timing.confirmMs,
          send: (tag, isMultiple, isAck) => this.#confirm(tag, isMultiple, isAck),
        })
        this.#send('confirm.select-ok', {})
        break
      case 'basic.qos':
        this.#prefetchCount = method.count
        this.#send('basic.qos-ok', {})
        break
      case 'basic.consume':
        this.#consume(method)
        break
      case 'basic.cancel':
        this.#cancel(method)
        break
      case 'basic.ack':
        this.#settle(method, (queue, consumer, deliveries) => queue.acked(consumer, deliveries.length))
        break
      case 'basic.nack':
        this.#settle(method, (queue, consumer, deliveries) => {
          if (method.isRequeued) queue.requeue(consumer, deliveries)
          else queue.acked(consumer, deliveries.length)
        })
        break
      default:
        throw new Refusal(503, `unexpected method ${method.name}`)
    }
  }

  #cancel(method: MethodOf<'basic.cancel'>): void {
    const { tag } = method
    const answer = () => this.#send('basic.cancel-ok', { tag })
    const consumer = this.#consumers.get(tag)
    this.#consumers.delete(tag)
    if (consumer === undefined) answer()
    else {
      this.#call(method, consumer.queue, () => {
        consumer.queue.cancel(consumer)
        return answer
      })
    }
  }

  #consume(method: MethodOf<'basic.consume'>): void {
    const queue = queueOf(this.#broker, this.#connection, method.queue)
    const tag = method.tag === '' ? `amq.ctag-${this.#number}-${++this.#consumerCount}` : method.tag
    if (this.#consumers.has(tag)) throw new Refusal(530, `attempt to reuse consumer tag '${tag}'`)
    const { noAck, isExclusive } = method
    const prefetchCount = this.#prefetchCount
    const state = { unackedCount: 0, nextOffset: 0 }
    const consumer: QueueConsumer = { client: this, queue, tag, noAck, isExclusive, prefetchCount, ...state }
    this.#consumers.set(tag, consumer)
    this.#call(method, queue, () => {
      queue.consume(consumer, method.args)
      return () => this.#send('basic.consume-ok', { tag })
    })
  }

  #publish({ exchange, key, isMandatory }: FieldsOf<'basic.publish'>, content: Content): void {
    const queues = this.#broker.route(exchange, key)
    if (queues.length === 0 && isMandatory) {
      const fields = { code: NO_ROUTE, text: 'NO_ROUTE', exchange, key }
      this.#connection.sendContent(this.#number, 'basic.return', fields, content)
    }
    const message = { ...content, exchange, key, isPersistent: isPersistent(content.properties) }
    const tag = this.#confirms?.begin(queues) ?? 0
    for (const queue of queues) queue.inbox.send(() => queue.enqueue(message, this, tag))
  }

  #settle(
    { tag, isMultiple }: Pick<FieldsOf<'basic.ack'>, 'tag' | 'isMultiple'>,
    tell: (queue: Queue, consumer: QueueConsumer, deliveries: readonly Delivery[]) => void,
  ): void {
    if (!this.#unacked.has(tag) && !(isMultiple && tag === 0)) throw new Refusal(406, `unknown delivery tag ${tag}`)
    const settled = new Map<QueueConsumer, Delivery[]>()
    for (const [each, { consumer, delivery }] of this.#unacked) {
      if (isMultiple ? tag !== 0 && each > tag : each !== tag) continue
      this.#unacked.delete(each)
      settled.set(consumer, [...(settled.get(consumer) ?? []), delivery])
    }
    for (const [consumer, deliveries] of settled) {
      consumer.queue.inbox.send(() => tell(consumer.queue, consumer, deliveries))
    }
  }

  #confirm(tag: number, isMultiple: boolean, isAck: boolean): void {
    if (!this.isOpen) return
    if (isAck) this.#send('basic.ack', { tag, isMultiple })
    else this.#send('basic.nack', { tag, isMultiple, isRequeued: false })
  }

  #refuse(cause: unknown, method: Method): void {
    if (!(cause instanceof Refusal)) throw cause
    this.end()
    this.#connection.refuse(this.#number, cause, idOf(method.name))
  }

  #send<N extends MethodName>(name: N, fields: FieldsOf<N>): void {
    this.#connection.send(this.#number, name, fields)
  }
}

/** What a call gives, or throws, is for later. */
function tried<T>(call: () => T): () => T {
  try {
    const result = call()
    return () => result
  } catch (cause) {
    return () => {
      throw cause
    }
  }
}
