import type { LinkMessage } from '../remote/link.js'

/** Who waits for what the server does to be known. */
export interface RoundWaiter {
  done(): void
  failed(cause: Error): void
}

/** What was sent between two pings. */
export interface Round {
  /** Those that were refused are empty. */
  readonly messages: (LinkMessage | undefined)[]
  lastSequence: number
  readonly waiters: RoundWaiter[]
}

/**
 * What the server has been sent and has not been heard to have done. It answers nothing but a ping, and that once it has done all
 * that came before: so a ping ends each round, several may be under way, and none is waited for before more is sent.
 */
export class NatsRounds {
  /** The last one is open. */
  #rounds: Round[] = [openRound()]

  /** Pings under way. */
  get pingCount(): number {
    return this.#rounds.length - 1
  }

  /** Whether anything was sent since the last ping. */
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

  /**
   * The oldest ping is answered.
   * @returns its round, with the sequence of its last message, 0 when it had none; `undefined` when no ping was under way
   */
  answered(): Readonly<Round> | undefined {
    return this.#rounds.length < 2 ? undefined : this.#rounds.shift()
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

  /** Those who wait for the oldest round that somebody waits for; they are no longer waiting. */
  takeOldestWaiters(): readonly RoundWaiter[] {
    return this.#rounds.find(({ waiters }) => waiters.length > 0)?.waiters.splice(0) ?? []
  }

  /** Everybody who waits; nobody is any more. */
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
