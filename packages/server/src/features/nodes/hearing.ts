/** Share of the time between two leases without an own message that has come back: then others are silent, too. */
const SILENT_SHARE = 5 / 4

export interface HearingContext {
  /** A clock, in milliseconds, that stands while this process does. */
  readonly now: () => number
  /** At least one message to all nodes is sent in this time. */
  readonly intervalMs: number
}

/**
 * Whether messages of other nodes arrive. While the broker stands still, or is away and does not say so yet, not even those of
 * this node come back.
 */
export class Hearing {
  readonly #context: HearingContext
  #isUp = false
  #wasUp = false
  /** When they arrived again; -Infinity: they always did. */
  #againMs = Number.NEGATIVE_INFINITY
  /** When an own message came back last; Infinity: none was sent. */
  #echoMs = Number.POSITIVE_INFINITY

  constructor(context: HearingContext) {
    this.#context = context
  }

  /** Whether the broker is there, as far as it says. */
  get isUp(): boolean {
    return this.#isUp
  }

  get isHearing(): boolean {
    return this.#isUp && !this.#isSilent
  }

  /** For how long they arrive: 0 while they do not, Infinity if they always did. */
  get sinceMs(): number {
    return this.isHearing ? this.#context.now() - this.#againMs : 0
  }

  /** Own messages are sent from now on. */
  begin(): void {
    this.#echoMs = this.#context.now()
  }

  /** An own message has come back. @returns Whether none did for too long. */
  echo(): boolean {
    const wasSilent = this.#isSilent
    this.#echoMs = this.#context.now()
    if (wasSilent) this.#againMs = this.#echoMs
    return wasSilent
  }

  /** @returns Whether it is another one. */
  status(isUp: boolean): boolean {
    if (isUp === this.#isUp) return false
    if (isUp && this.#wasUp) this.#againMs = this.#context.now()
    this.#isUp = isUp
    this.#wasUp ||= isUp
    return true
  }

  get #isSilent(): boolean {
    const { now, intervalMs } = this.#context
    return now() - this.#echoMs > intervalMs * SILENT_SHARE
  }
}
