import type { LinkMessage } from '../remote/link.js'

/** Waits for the server's answer. */
export interface RoundWaiter {
  done(): void
  failed(cause: Error): void
}

/** What was sent between two pings. */
export interface Round {
  /** Refused messages are `undefined`. */
  readonly messages: (LinkMessage | undefined)[]
  lastSequence: number
  readonly waiters: RoundWaiter[]
}

/**
 * The messages and requests that the server has not confirmed. Core NATS answers only pings, each after everything
 * before it. So a ping ends each round. Several rounds may be open; no round waits for another.
 */
export class NatsRounds {
  /** The last round is open: no ping has ended it. */
  #rounds: Round[] = [openRound()]
  /** Number of the oldest rounds whose pings are answered but that are not settled. */
  #answeredCount = 0

  /** Number of closed rounds that are not settled. */
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

  /** The oldest unanswered ping is answered. */
  answered(): void {
    this.#answeredCount++
  }

  /** Removes the oldest answered round. Call it when all errors of that round are known. */
  settled(): Readonly<Round> | undefined {
    if (this.#answeredCount === 0) return undefined
    this.#answeredCount--
    return this.#rounds.shift()
  }

  /** Removes the oldest message that `isIt` is true for. */
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
   * Removes the waiters that an error without a subject may belong to: those of all answered rounds, or else those of
   * the oldest round that has any.
   */
  takeOldestWaiters(): readonly RoundWaiter[] {
    const answered = this.#rounds.slice(0, this.#answeredCount).flatMap(({ waiters }) => waiters.splice(0))
    if (answered.length > 0) return answered
    return this.#rounds.find(({ waiters }) => waiters.length > 0)?.waiters.splice(0) ?? []
  }

  /** Removes all waiters. */
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
