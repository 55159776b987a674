import type { RawConnection } from './raw-connection.js'

/** A server never refuses for longer [P-10.7]. */
const RETRY_MS = 1_000
const REFUSED_FOR_A_TIME = ['E_RATE_LIMIT', 'E_TIMEOUT']

/** An honest client that publishes in order, and sends again what it was refused for a time. Its ids are as long as each other. */
export class Publisher {
  readonly #connection: RawConnection
  readonly #onAnswer: (id: string, refusal: string | undefined) => void
  /** By their requests, in order. */
  readonly #unanswered = new Map<string, string>()
  /** Refused, or behind one that was. */
  readonly #held = new Map<string, string>()
  #retry: NodeJS.Timeout | undefined

  /** @param onAnswer Is told why a message was refused for good, or `undefined`. */
  constructor(connection: RawConnection, onAnswer: (id: string, refusal: string | undefined) => void) {
    this.#connection = connection
    this.#onAnswer = onAnswer
  }

  get hasEnded(): boolean {
    return this.#connection.hasEnded
  }

  publish(id: string, message: string): void {
    if (this.#held.size > 0) this.#held.set(id, message)
    else this.#send(id, message)
  }

  /** Takes an answer to a publish, by its header. */
  receive(header: string): void {
    const [verb, id = '', code = ''] = header.split(/[ \n]/, 3)
    const message = this.#unanswered.get(id)
    if (message === undefined || (verb !== 'ok' && verb !== 'error')) return
    this.#unanswered.delete(id)
    if (verb === 'error' && REFUSED_FOR_A_TIME.includes(code)) this.#held.set(id, message)
    else this.#onAnswer(id, verb === 'error' ? code : header.includes(' duplicate') ? 'duplicate' : undefined)
    if (this.#held.size === 0 || this.#unanswered.size > 0 || this.#retry !== undefined) return
    this.#retry = setTimeout(() => this.#sendHeld(), RETRY_MS)
  }

  #sendHeld(): void {
    this.#retry = undefined
    const held = [...this.#held].sort(([one], [other]) => (one < other ? -1 : 1))
    this.#held.clear()
    for (const [id, message] of held) this.#send(id, message)
  }

  #send(id: string, message: string): void {
    this.#unanswered.set(id, message)
    this.#connection.send(message).catch(() => {
      if (this.#unanswered.delete(id)) this.#onAnswer(id, 'closed')
    })
  }
}
