import type { LinkMessage } from '../remote/link.js'

/** Waits until the server has done something. */
export interface RoundWaiter {
  done(): void
  failed(cause: Error): void
}

/** What was sent between two pings. */
export interface Round {
  /** Refused ones are empty. */
  readonly messages: (LinkMessage | undefined)[]
  lastSequence: number
  readonly waiters: RoundWaiter[]
}

/**
 * What the server was sent and has not yet confirmed. Core NATS confirms nothing but a ping, and answers it after everything that came before.
 * So a ping ends each round. Several may be under way; no round waits for another.
 */
export class NatsRounds {
  /** The last one is open. */
  #rounds: Round[] = [openRound()]
  /** Of the oldest rounds: their pings are answered, and they are not settled. */
  #answeredCount = 0

  /** Rounds that are not settled. */
  get pingCount(): number {
    return this.#rounds.length - 1
  }

  /** Whether nothing was sent since the last ping. */
  get isOpenEmpty(): boolean {
    const { messages, waiters } = this.#open
    return messages.length === 0 && waiters.length === 0
  }

  sent(message: LinkMessage): void {
    const open = this.#open
    open.messages.push(message)
    open.lastSequence = message.sequence
  }

  wait(waiter: RoundWaiter): void {
    this.#open.waiters.push(waiter)
  }

  /** A ping is sent. */
  close(): void {
    this.#rounds.push(openRound())
  }

  /** The oldest ping without an answer is answered. */
  answered(): void {
    this.#answeredCount++
  }

  /** Takes out the oldest answered round, once all complaints about it are known. */
  settled(): Readonly<Round> | undefined {
    if (this.#answeredCount === 0) return undefined
    this.#answeredCount--
    return this.#rounds.shift()
  }

  /** Takes out the oldest message that `isIt` is true for. */
  take(isIt: (message: LinkMessage) => boolean): LinkMessage | undefined {
    for (const { messages } of this.#rounds) {
      const at = messages.findIndex((message) => message !== undefined && isIt(message))
      if (at < 0) continue
      const message = messages[at]
      messages[at] = undefined
      return message
    }
    return undefined
  }

  /**
   * Takes out the waiters that a complaint without a subject may mean: those of all answered rounds, else those of the oldest round
   * that has any.
   */
  takeOldestWaiters(): readonly RoundWaiter[] {
    const answered = this.#rounds.slice(0, this.#answeredCount).flatMap(({ waiters }) => waiters.splice(0))
    if (answered.length > 0) return answered
    return this.#rounds.find(({ waiters }) => waiters.length > 0)?.waiters.splice(0) ?? []
  }

  /** Takes out every waiter. */
  takeAllWaiters(): readonly RoundWaiter[] {
    return this.#rounds.flatMap(({ waiters }) => waiters.splice(0))
  }

  get #open(): Round {
    return this.#rounds[this.#rounds.length - 1] as Round
  }
}

function openRound(): Round {
  return { messages: [], lastSequence: 0, waiters: [] }
}
