import type { Accepted } from '../../ports/broker.js'

/** What a publish is answered that no node will see twice. */
export const ACCEPTED: Accepted = Object.freeze({ isDuplicate: false })

/**
 * The answer that the calls of one turn share which went to the same nodes: resolves when all of these nodes have taken all of
 * the calls in, or were given up. One promise a turn costs a publisher of many messages far less than one each.
 */
export class Receipt {
  readonly promise: Promise<Accepted>
  /** Nodes that have not answered yet. */
  waitingCount = 0
  /** Publishes among the calls. */
  messageCount = 0
  messageBytes = 0
  readonly sinceMs: number
  #isOpen = true
  #isSettled = false
  #resolve: (accepted: Accepted) => void = () => undefined
  #reject: (error: Error) => void = () => undefined
  readonly #onSettled: (receipt: Receipt, isAccepted: boolean) => void

  /** @param onSettled Called before whoever waits goes on. */
  constructor(nowMs: number, onSettled: (receipt: Receipt, isAccepted: boolean) => void) {
    this.sinceMs = nowMs
    this.#onSettled = onSettled
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** No more calls join. */
  close(): void {
    this.#isOpen = false
    this.#settle()
  }

  /** One of the nodes has taken all calls in, or was given up. */
  answered(): void {
    this.waitingCount--
    this.#settle()
  }

  /** Nobody will answer any more. */
  fail(error: Error): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#onSettled(this, false)
    this.#reject(error)
  }

  #settle(): void {
    if (this.#isOpen || this.waitingCount > 0 || this.#isSettled) return
    this.#isSettled = true
    this.#onSettled(this, true)
    this.#resolve(ACCEPTED)
  }
}
