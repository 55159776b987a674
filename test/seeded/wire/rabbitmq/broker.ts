import type { WireBroker, WireLink, WireSession } from '../broker.js'
import { Connection } from './connection.js'
import { Exchange } from './exchanges.js'
import { AT_ONCE, after, type Timing } from './lane.js'
import type { Queue } from './queue.js'
import { Refusal } from './refusal.js'

export interface RabbitmqModelOptions {
  /** Default 5,672. */
  readonly port?: number
  /** Default: everything at once. */
  readonly timing?: Timing
  /** That it tells. Streams of the later one give the bytes of a header back as text. Default: 3.10.8. */
  readonly version?: '3.10.8' | '4.0.5'
}

/** What is on the disk of a broker. */
interface Kept {
  readonly exchanges: readonly Exchange[]
  readonly queues: readonly Queue[]
}

/**
 * RabbitMQ, as far as nodes and the programs beside them use it: one server, one virtual host.
 *
 * Left out, because no node uses it: transactions, `basic.get`, `basic.recover`, alternate exchanges and bindings between exchanges,
 * exchanges of type `headers`, quorum queues, priorities, expiry, `x-death`, permissions, TLS, and what a cluster does.
 */
export class RabbitmqModel implements WireBroker {
  readonly port: number
  readonly timing: Timing
  readonly version: '3.10.8' | '4.0.5'
  readonly exchanges = new Map<string, Exchange>()
  readonly queues = new Map<string, Queue>()
  readonly users = new Map([['guest', 'guest']])
  /** For all classic queues: an operator bounds them, and connections that are slow take no more messages ahead. */
  readonly policy = { maxCount: Number.POSITIVE_INFINITY, maxUnackedCount: Number.POSITIVE_INFINITY }
  /** What it is short of. */
  alarm: string | undefined
  readonly #connections = new Set<Connection>()
  #isUp = true
  #queueCount = 0
  #kept: Kept = { exchanges: [], queues: [] }

  constructor({ port = 5_672, timing = AT_ONCE, version = '3.10.8' }: RabbitmqModelOptions = {}) {
    this.port = port
    this.version = version
    this.timing = timing
    for (const type of ['topic', 'direct', 'fanout'] as const) {
      this.exchanges.set(`amq.${type}`, new Exchange(`amq.${type}`, type, true))
    }
  }

  connectionNames(): readonly string[] {
    return [...this.#connections].map(({ name }) => name)
  }

  connect(link: WireLink): WireSession {
    const connection = new Connection(this, link)
    if (this.#isUp) this.#connections.add(connection)
    else connection.reset()
    return connection
  }

  kill(lostCount: number): void {
    this.#isUp = false
    this.alarm = undefined
    for (const connection of [...this.#connections]) connection.reset()
    // What is on its way inside it goes to queues that are no more.
    this.#putBack({ exchanges: [...this.exchanges.values()], queues: [...this.queues.values()] })
    for (const queue of this.queues.values()) queue.lose(lostCount)
  }

  start(): void {
    this.#isUp = true
  }

  /** Keeps a copy of what is on its disk. Replaces an earlier one. */
  keepData(): void {
    this.#kept = this.#copyOf({ exchanges: [...this.exchanges.values()], queues: [...this.queues.values()] })
  }

  /** Kills it, and puts the copy back. */
  restoreData(): void {
    this.kill(0)
    this.#putBack(this.#kept)
  }

  /** Kills it, and deletes what is on its disk. */
  wipe(): void {
    this.kill(0)
    this.#putBack({ exchanges: [...this.exchanges.values()].filter(({ name }) => name.startsWith('amq.')), queues: [] })
  }

  /** Sets an alarm, or ends it. */
  setAlarm(reason: string | undefined): void {
    this.alarm = reason
    if (reason === undefined) for (const connection of this.#connections) connection.unblock()
  }

  /** Queues have other things to do: what comes to them waits. */
  holdQueues(isHeld: boolean): void {
    for (const queue of this.queues.values()) queue.inbox.hold(isHeld)
  }

  /** As an operator does. */
  closeConnections(reason: string): void {
    for (const connection of [...this.#connections]) connection.refuse(0, new Refusal(320, reason))
  }

  newQueueName(): string {
    return `amq.gen-${++this.#queueCount}`
  }

  /** Where a message goes. */
  route(exchange: string, key: string): readonly Queue[] {
    if (exchange === '') {
      const queue = this.queues.get(key)
      return queue === undefined ? [] : [queue]
    }
    const found = this.exchanges.get(exchange)
    if (found === undefined) throw new Refusal(404, `no exchange '${exchange}' in vhost '/'`)
    return found.route(key)
  }

  /** As `route`; without its exchange a dropped message is gone. */
  deadLetterQueues(exchange: string, key: string): readonly Queue[] {
    return exchange !== '' && !this.exchanges.has(exchange) ? [] : this.route(exchange, key)
  }

  removeQueue(queue: Queue): void {
    if (queue.isDeleted) return
    this.queues.delete(queue.options.name)
    for (const exchange of this.exchanges.values()) exchange.unbind((binding) => binding.queue === queue)
    queue.end()
  }

  forget(connection: Connection): void {
    this.#connections.delete(connection)
  }

  /** @param isOrderly Its exclusive queues are gone before it is answered; else they go after some time. */
  removeQueuesOf(connection: Connection, isOrderly: boolean): void {
    after(isOrderly ? 0 : this.timing.changeMs(), () => {
      for (const queue of [...this.queues.values()]) if (queue.options.owner === connection) this.removeQueue(queue)
    })
  }

  #putBack(kept: Kept): void {
    const { exchanges, queues } = this.#copyOf(kept)
    for (const queue of [...this.queues.values()]) this.removeQueue(queue)
    this.exchanges.clear()
    for (const exchange of exchanges) this.exchanges.set(exchange.name, exchange)
    for (const queue of queues) this.queues.set(queue.options.name, queue)
  }

  #copyOf({ exchanges, queues }: Kept): Kept {
    const copies = new Map<Queue, Queue>()
    for (const queue of queues) {
      if (queue.options.isDurable && queue.options.owner === undefined) copies.set(queue, queue.copy())
    }
    const copied = exchanges
      .filter(({ isDurable }) => isDurable)
      .map((exchange) => {
        const copy = new Exchange(exchange.name, exchange.type, true)
        for (const { key, queue } of exchange.bindings) {
          const bound = copies.get(queue)
          if (bound !== undefined) copy.bind(key, bound)
        }
        return copy
      })
    return { exchanges: copied, queues: [...copies.values()] }
  }
}
