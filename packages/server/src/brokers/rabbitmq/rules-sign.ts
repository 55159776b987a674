import { createHash } from 'node:crypto'
import type { Channel } from 'amqplib'
import type { HistoryRules } from '../../ports/history-rules.js'
import type { AmqpConnection } from './connection.js'
import { REFUSALS, replyCodeOf } from './errors.js'
import { logQueueOf, NOT_FOUND, onChannel } from './log-queue.js'

const HASH_BYTES = 6

/**
 * The sign of the log: an empty durable queue. Its largest length stands for the epoch and the rules, because RabbitMQ
 * compares that with the one of a second declaration. Where it is refused, the log is not signed.
 */
export class RulesSign {
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
