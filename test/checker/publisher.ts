import type { ActorOptions } from './actor.js'
import type { PublisherRecord } from './record.js'

export interface PublisherOptions extends ActorOptions {
  /** It publishes to one after the other, in order; logged and unlogged ones alike. */
  readonly keys: readonly string[]
  /** Publishes that wait for an answer at the same time. Default 32. */
  readonly maxInFlight?: number
  /** Messages that are sent in one turn. Default 1. */
  readonly burstCount?: number
  /** Pause between two bursts. Default 10. */
  readonly everyMs?: number
  /** Bounds of the size of a payload. Default 100 to 100. */
  readonly payloadBytes?: readonly [min: number, max: number]
  /** Share of messages with `noecho`. Default 0. */
  readonly noechoShare?: number
  /** Share of messages that are published on two nodes at once, with one id. Default 0. */
  readonly twinShare?: number
  /** Share of messages that are published once more, on another node, after their `ok`. Default 0. */
  readonly againShare?: number
  /** An answer that takes longer ends the connection. Default 10,000: longer than a node waits for its broker. */
  readonly answerTimeoutMs?: number
}

/**
 * Publishes numbered messages until every one is answered, over connections that end. What was not answered is published
 * again, in its order and with its ids, on another node.
 */
export class Publisher {
  readonly record: PublisherRecord

  constructor(options: PublisherOptions) {
    this.record = { name: options.name, messages: [] }
    options.record.publishers.push(this.record)
  }

  /** Begins to publish. */
  start(): void {
    throw new Error('not written yet')
  }

  /** Publishes nothing new. */
  pause(): void {
    throw new Error('not written yet')
  }

  /** Whether every message has been answered with `ok`, or with an error that is not retryable. */
  get isSettled(): boolean {
    throw new Error('not written yet')
  }

  /** Ends its connection without a close frame; it goes on on another node. */
  cut(): void {
    throw new Error('not written yet')
  }

  /** Does not read for some time. */
  stall(_forMs: number): void {
    throw new Error('not written yet')
  }

  /** Closes its connections. What was not answered stays `pending` or `unanswered`. */
  async stop(): Promise<void> {
    throw new Error('not written yet')
  }
}
