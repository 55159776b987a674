import { setTimeout } from 'node:timers/promises'
import type { Deferred } from '../../../kernel/base/deferred.js'

const POLL_MS = 50

interface Waiting {
  readonly made: Deferred<void>
  /** Messages after which those of the beginning have come. */
  mostCount?: number
}

/**
 * Waits until every message that is in the queue of a node has come out. Meant for a broker that takes no messages, where
 * no marker can follow them. Any number of waits share one question to the broker.
 */
export class QueueEmptied {
  readonly #look: () => Promise<{ readonly messageCount: number }>
  readonly #prefetchCount: number
  /** Of the binds of one link. */
  #waiting: Waiting[] = []
  /** Messages that have come. */
  takenCount = 0

  /**
   * @param look Asks the broker, on the channel that the messages come by.
   * @param prefetchCount Most messages on their way, which the answer does not count.
   */
  constructor(look: () => Promise<{ readonly messageCount: number }>, prefetchCount: number) {
    this.#look = look
    this.#prefetchCount = prefetchCount
  }

  /** Resolves it when the messages of now have come; never, if the channel ends. */
  wait(made: Deferred<void>): void {
    this.#waiting.push({ made })
    // The end of the channel is reported where it is watched.
    if (this.#waiting.length === 1) this.#run().catch(() => undefined)
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const asked = [...this.#waiting]
      const { messageCount } = await this.#look()
      for (const each of asked) each.mostCount ??= this.takenCount + messageCount + this.#prefetchCount
      // The answer overtakes messages that are on their way to the channel. These come before the next answer.
      await this.#look()
      // The broker may take messages again meanwhile: then it may never be empty.
      const isOver = ({ mostCount = 0 }: Waiting) => messageCount === 0 || this.takenCount >= mostCount
      const over = new Set(asked.filter(isOver))
      for (const { made } of over) made.resolve()
      this.#waiting = this.#waiting.filter((each) => !over.has(each))
      if (this.#waiting.length > 0) await setTimeout(POLL_MS)
    }
  }
}
