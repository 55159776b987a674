import { matches } from 'webmq-client/protocol'
import type { Broker, BrokerSink } from 'webmq-server/ports'

/**
 * A broker with listeners, as in a node: the sink gets the messages that match the bound patterns, and the broker
 * learns that no others had listeners.
 */
export class ListeningNode<B extends Broker, S extends BrokerSink> {
  readonly broker: B
  readonly sink: S
  readonly #patterns = new Set<string>()

  constructor(broker: B, sink: S) {
    this.broker = broker
    this.sink = sink
  }

  /** Starts the broker, for the first time or again. */
  async start(): Promise<void> {
    await this.broker.start({
      deliver: (message) => this.#isListening(message.key) && this.sink.deliver(message),
      status: (status, cause) => this.sink.status(status, cause),
      gap: (reason, isAffected) => this.sink.gap(reason, isAffected),
      refused: (message) => this.sink.refused(message),
    })
  }

  async bind(pattern: string): Promise<void> {
    this.#patterns.add(pattern)
    try {
      await this.broker.bind(pattern)
    } catch (error) {
      this.#patterns.delete(pattern)
      throw error
    }
  }

  unbind(pattern: string): void | Promise<void> {
    this.#patterns.delete(pattern)
    return this.broker.unbind(pattern)
  }

  #isListening(key: string): boolean {
    for (const pattern of this.#patterns) if (matches(pattern, key)) return true
    return false
  }
}
