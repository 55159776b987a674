/**
 * A node that starts knows all others once one that serves clients has named them. If none has by then, from when the broker
 * has accepted its question, there are no more than those who start too.
 */
const GREETING_MS = 250

export interface MeetingContext {
  /** Resolves when the condition holds at a look, after the time (default: a second), or when the node stops. */
  until(condition: () => boolean, timeoutMs?: number): Promise<void>
  look(): void
  isOpen(): boolean
  /** A clock, in milliseconds. */
  now(): number
  /** Whether this node has what the nodes that it knows share. */
  isComplete(): boolean
  /** Forgets nodes that others have named, and that say nothing. */
  removeSilent(): void
}

/** How a node that starts learns who is there. Messages may be lost meanwhile: each time is a new round. */
export class Meeting {
  readonly #context: MeetingContext
  round = 0
  /** The last one in which the broker has accepted a lease of this node, which asks the others for theirs. */
  #askedRound = -1
  /** The last one in which a node that serves clients has named the others. */
  #namedRound = -1
  /** Since when this node knows the others, or that there are none; infinite: it does not yet. */
  metMs = Number.POSITIVE_INFINITY
  /** The others have had time to answer. */
  isGreeted = false

  constructor(context: MeetingContext) {
    this.#context = context
  }

  get hasMet(): boolean {
    return this.metMs < Number.POSITIVE_INFINITY
  }

  /** Messages may have been lost. */
  interrupted(): void {
    this.round++
  }

  /** The broker has accepted the question. */
  asked(round: number): void {
    this.#askedRound = round
    this.#context.look()
  }

  /** A node that serves clients has named the others. */
  named(): void {
    this.#namedRound = this.round
  }

  /** Goes on until it knows the others. A node that stops before does not know them: what waits for that fails. */
  async begin(): Promise<void> {
    const { until, look, isOpen, now, isComplete, removeSilent } = this.#context
    let greeting: Promise<void> | undefined
    for (let isOver = false; !isOver && isOpen(); ) {
      const { round } = this
      await until(() => this.#askedRound === this.round)
      if (this.#askedRound !== round) continue
      greeting = until(() => false, GREETING_MS)
      await until(() => this.#namedRound === this.round, GREETING_MS)
      isOver = round === this.round
    }
    await until(isComplete)
    if (!isOpen()) return
    removeSilent()
    this.metMs = now()
    look()
    await greeting
    this.isGreeted = true
    look()
  }
}
