import { once } from 'node:events'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { nowUs } from '../measure/clock.js'

/**
 * Most wake-ups per second; beyond, a turn of the event loop carries several messages, so that waking is not the load.
 */
const MIN_INTERVAL_US = 1_000
/** The thread has started by then. */
const LEAD_US = 100_000

export interface PacerThreadData {
  readonly port: MessagePort
  /** `[0]`: 1 when the thread must end; `[1]`: 1 while a wake-up is on its way. */
  readonly state: Int32Array<SharedArrayBuffer>
  readonly startUs: number
  readonly intervalUs: number
}

/**
 * Wakes the event loop when messages are due, from a thread that sleeps on a futex. Timers of the event loop fire on
 * whole milliseconds, up to one late, which would be most of the latency of an idle server. Cost: about 20 us of CPU
 * per wake-up.
 */
export class TurnPacer {
  readonly #intervalUs: number
  readonly #state = new Int32Array(new SharedArrayBuffer(8))
  readonly #channel = new MessageChannel()
  #worker: Worker | undefined
  #wake: () => void = () => undefined
  #isDue = false

  constructor(intervalUs: number) {
    this.#intervalUs = Math.max(MIN_INTERVAL_US, intervalUs)
    this.#channel.port1.on('message', () => {
      Atomics.store(this.#state, 1, 0)
      this.#isDue = true
      this.#wake()
    })
  }

  /** Starts the thread; resolves just before the first message is due, with that moment on the machine's clock. */
  async start(): Promise<number> {
    const startUs = nowUs() + LEAD_US
    const data: PacerThreadData = {
      port: this.#channel.port2,
      state: this.#state,
      startUs,
      intervalUs: this.#intervalUs,
    }
    const worker = new Worker(new URL('./pacer-thread.js', import.meta.url), {
      workerData: data,
      transferList: [this.#channel.port2],
    })
    this.#worker = worker
    await once(worker, 'online')
    await this.next()
    return startUs
  }

  /** Resolves at the next wake-up, or at once when one has come since the last. */
  async next(): Promise<void> {
    if (!this.#isDue) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    this.#isDue = false
  }

  stop(): void {
    Atomics.store(this.#state, 0, 1)
    Atomics.notify(this.#state, 0)
    this.#channel.port1.close()
    this.#worker?.unref()
  }
}
