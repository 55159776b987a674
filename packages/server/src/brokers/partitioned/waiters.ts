import { WebMQError } from 'webmq-client/protocol'
import type { Broker } from '../../ports/broker.js'

/** A call that waits for a partition. */
interface Waiter {
  go(broker: Broker): void
  fail(error: unknown): void
}

/** Calls that wait for a partition, in their order, each for a limited time. */
export class Waiters {
  readonly #timeoutMs: number
  readonly #waiting = new Set<Waiter>()

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  /**
   * Calls with the partition's broker once it is there.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE` after the time limit, and the error of the start.
   */
  add<T>(call: (broker: Broker) => T | Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const end = () => {
        clearTimeout(timer)
        this.#waiting.delete(waiter)
      }
      const waiter = {
        go: (broker: Broker) => {
          end()
          try {
            resolve(call(broker))
          } catch (error) {
            reject(error)
          }
        },
        fail: (error: unknown) => {
          end()
          reject(error)
        },
      }
      const timer = setTimeout(() => {
        const detail = `the partition of the log did not start within ${this.#timeoutMs} ms`
        waiter.fail(new WebMQError('E_BROKER_UNAVAILABLE', { detail }))
      }, this.#timeoutMs)
      timer.unref()
      this.#waiting.add(waiter)
    })
  }

  /** In one turn, so that no later call comes in between. */
  goAll(broker: Broker): void {
    for (const waiter of [...this.#waiting]) waiter.go(broker)
  }

  failAll(error: unknown): void {
    for (const waiter of [...this.#waiting]) waiter.fail(error)
  }
}
