import { setTimeout as sleep } from 'node:timers/promises'
import { type Counts, count, type HeardEvent, type Published, type System } from 'webmq-check/systems'
import { nowUs } from '../../measure/clock.js'

const CHANNEL = 'bystander'
const INTERVAL_MS = 20

/** Milliseconds since it was last asked. */
export interface BystanderTimes {
  /** From a publish to its answer. */
  readonly answerMs: readonly number[]
  /** From a publish to its message at the listener. */
  readonly deliveryMs: readonly number[]
}

/** A publisher and a listener of one node, which are on no connection that moves. */
export class Bystander {
  readonly #system: System
  readonly #port: number
  readonly #events: HeardEvent[] = []
  readonly #published: Published[] = []
  readonly #sentUs = new Map<number, number>()
  #answerMs: number[] = []
  #deliveryMs: number[] = []
  #client: { close(): void } | undefined
  #publishing = Promise.resolve()
  #isOver = false

  constructor(system: System, port: number) {
    this.#system = system
    this.#port = port
  }

  async start(): Promise<void> {
    this.#client = await this.#system.listen(this.#port, [CHANNEL], (event) => {
      this.#events.push(event)
      if (event.what !== 'message') return
      const sentUs = this.#sentUs.get(event.number)
      if (sentUs !== undefined) this.#deliveryMs.push((nowUs() - sentUs) / 1_000)
    })
    this.#publishing = this.#publish()
  }

  take(): BystanderTimes {
    const times = { answerMs: this.#answerMs, deliveryMs: this.#deliveryMs }
    this.#answerMs = []
    this.#deliveryMs = []
    return times
  }

  /** It publishes no more. Idempotent. */
  async quiesce(): Promise<void> {
    this.#isOver = true
    await this.#publishing
  }

  counts(): Counts {
    return count({ published: this.#published, listeners: [{ name: CHANNEL, events: this.#events }] })
  }

  async stop(): Promise<void> {
    await this.quiesce()
    this.#client?.close()
  }

  async #publish(): Promise<void> {
    for (let number = 1; !this.#isOver; number++) {
      const sentUs = nowUs()
      this.#sentUs.set(number, sentUs)
      const outcome = await this.#system.publish(`http://127.0.0.1:${this.#port}`, { channel: CHANNEL, number })
      this.#answerMs.push((nowUs() - sentUs) / 1_000)
      this.#published.push({ channel: CHANNEL, number, outcome })
      await sleep(INTERVAL_MS)
    }
  }
}
