import { deferred } from '../../base/deferred.js'
import type { Accepted } from '../../ports/broker.js'

/** The answer to a publish that is not logged. */
export const ACCEPTED: Accepted = Object.freeze({ isDuplicate: false })

/**
 * One answer for all calls of a turn that went to the same nodes. It resolves when each of these nodes has acknowledged
 * all calls, or was given up. One promise per turn is much cheaper than one per message.
 */
export class AckGroup {
  readonly #answer = deferred<Accepted>()
  /** Nodes that have not answered yet. */
  waitingCount = 0
  /** Publishes among the calls. */
  messageCount = 0
  messageBytes = 0
  #isOpen = true
  #isSettled = false
  readonly #onSettled: (group: AckGroup, isAccepted: boolean) => void

  /** @param onSettled Called before the promise resolves. */
  constructor(onSettled: (group: AckGroup, isAccepted: boolean) => void) {
    this.#onSettled = onSettled
  }

  /** Resolves when all nodes have answered. */
  get promise(): Promise<Accepted> {
    return this.#answer.promise
  }

  /** No more calls join the group. */
  close(): void {
    this.#isOpen = false
    this.#settle()
  }

  /** A node has acknowledged all calls, or was given up. */
  answered(): void {
    this.waitingCount--
    this.#settle()
  }

  /** No answer will come. */
  fail(error: Error): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#onSettled(this, false)
    this.#answer.reject(error)
  }

  #settle(): void {
    if (this.#isOpen || this.waitingCount > 0 || this.#isSettled) return
    this.#isSettled = true
    this.#onSettled(this, true)
    this.#answer.resolve(ACCEPTED)
  }
}
