import { createHash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Channel } from 'amqplib'
import type { HistoryRules } from 'webmq-server/ports'
import type { AmqpConnection } from './connection.js'
import { REFUSALS, replyCodeOf } from './errors.js'
import { logQueueOf, NOT_FOUND, onChannel } from './log-queue.js'

/** Time that a node gives others to set the mark, when it may not set it itself. */
const MAX_WAIT_MS = 2_000
const POLL_MS = 100

/**
 * A message that only the memory of RabbitMQ holds, in a durable queue for each epoch of the log. Where it is missing, RabbitMQ
 * was restarted since a node has last said that the log is whole (ADR 52).
 */
export class RestartMark {
  readonly #connection: AmqpConnection
  readonly #namespace: string
  /** Why RabbitMQ refuses the queue. All marks then count as set. */
  refusal: string | undefined

  /** @param connection One that publishes: RabbitMQ stops those that do when it runs out of memory or disk. */
  constructor(connection: AmqpConnection, namespace: string) {
    this.#connection = connection
    this.#namespace = namespace
  }

  isSet(epoch: string): Promise<boolean> {
    return this.#declared(epoch, false)
  }

  async set(epoch: string): Promise<void> {
    await this.#declared(epoch, true)
  }

  /** Waits for another node to set it. Resolves to whether one has. */
  async isSetInTime(epoch: string): Promise<boolean> {
    for (let leftMs = MAX_WAIT_MS; leftMs > 0; leftMs -= POLL_MS) {
      await setTimeout(POLL_MS)
      if (await this.isSet(epoch)) return true
    }
    return false
  }

  /** Its epoch is over. */
  async remove(epoch: string): Promise<void> {
    await this.#tried(
      () => onChannel(this.#connection, (channel) => channel.deleteQueue(this.#queueOf(epoch))),
      undefined,
    )
  }

  /** @returns whether it was set before. */
  #declared(epoch: string, sets: boolean): Promise<boolean> {
    const queue = this.#queueOf(epoch)
    const declare = () =>
      onChannel(this.#connection, async (channel) => {
        // RabbitMQ 4.3 refuses transient queues. Quorum queues, which may be the default, keep all messages.
        const args = { 'x-queue-type': 'classic', 'x-max-length': 1 }
        const { messageCount } = await channel.assertQueue(queue, { durable: true, arguments: args })
        if (sets && messageCount === 0) channel.sendToQueue(queue, Buffer.alloc(0), { persistent: false })
        return messageCount > 0
      })
    return this.#tried(declare, true)
  }

  /** @param refused The result when RabbitMQ refuses it. */
  async #tried<T>(call: () => Promise<T>, refused: T): Promise<T | false> {
    try {
      return await call()
    } catch (cause) {
      const code = replyCodeOf(cause)
      if (code === NOT_FOUND) return false
      if (code === undefined || !REFUSALS.includes(code)) throw cause
      this.refusal = String(cause)
      return refused
    }
  }

  #queueOf(epoch: string): string {
    return `${logQueueOf(this.#namespace)}.${epoch}`
  }
}

const HASH_BYTES = 6

/**
 * The mark of the log: an empty durable queue. Its largest length stands for the epoch and the rules, because RabbitMQ
 * compares that with the one of a second declaration. Where it is refused, the log is not marked.
 */
export class RulesMark {
  readonly #connection: AmqpConnection
  readonly #queue: string
  readonly #rules: HistoryRules

  constructor(connection: AmqpConnection, namespace: string, rules: HistoryRules) {
    this.#connection = connection
    this.#queue = `${logQueueOf(namespace)}.rules`
    this.#rules = rules
  }

  async isSet(epoch: string): Promise<boolean> {
    // The declaration would make it.
    const isThere = await this.#tried((channel) => channel.checkQueue(this.#queue))
    return isThere && (await this.#declared(epoch))
  }

  /** For an epoch that this node has begun. */
  async set(epoch: string): Promise<void> {
    if (await this.#declared(epoch)) return
    await this.#tried((channel) => channel.deleteQueue(this.#queue))
    await this.#declared(epoch)
  }

  /** @throws when it is on a server that is down. */
  async remove(): Promise<void> {
    await this.#tried((channel) => channel.deleteQueue(this.#queue), REFUSALS)
  }

  #declared(epoch: string): Promise<boolean> {
    const hash = createHash('sha256').update(`${epoch} ${this.#rules.fingerprint}`).digest()
    const args = { 'x-queue-type': 'classic', 'x-max-length': hash.readUIntBE(0, HASH_BYTES) }
    return this.#tried((channel) => channel.assertQueue(this.#queue, { durable: true, arguments: args }))
  }

  /** Resolves to `false` for an error with one of the codes. */
  async #tried(call: (channel: Channel) => Promise<unknown>, codes = [NOT_FOUND, ...REFUSALS]): Promise<boolean> {
    try {
      await onChannel(this.#connection, call)
      return true
    } catch (cause) {
      if (!codes.includes(replyCodeOf(cause) ?? 0)) throw cause
      return false
    }
  }
}
