/** Replayed messages that are sent in a turn of the event loop; then timers and other connections have theirs. About a millisecond. */
const MAX_MESSAGES_PER_TURN = 500
/** Of those who wait, so many go on in one turn when their replays are short. */
const MAX_REPLAYS_PER_TURN = 64

/** Shares the event loop between replays and everything else: a node that replays to many, or much, is there for others all the same. */
export class ReplayPacer {
  #sentCount = 0
  #replayCount = 0
  /** In the order in which they came; one per connection at most, for what comes behind it waits too. */
  #waiting: (() => void)[] = []
  #isScheduled = false

  /** Resolves when a page may be replayed: at once, unless this turn has seen enough. */
  turn(): void | Promise<void> {
    if (this.#waiting.length === 0 && this.#sentCount < MAX_MESSAGES_PER_TURN) {
      this.#replayCount++
      return
    }
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      this.#schedule()
    })
  }

  /** A message of a replay is being sent. */
  sent(): void {
    this.#sentCount++
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#nextTurn())
  }

  /** Lets go as many as would fill a turn if their replays are as long as those of the last. */
  #nextTurn(): void {
    this.#isScheduled = false
    const messagesPerReplay = Math.max(1, this.#sentCount / Math.max(1, this.#replayCount))
    const count = Math.min(MAX_REPLAYS_PER_TURN, Math.max(1, Math.floor(MAX_MESSAGES_PER_TURN / messagesPerReplay)))
    const next = this.#waiting.slice(0, count)
    this.#waiting = this.#waiting.slice(count)
    this.#sentCount = 0
    this.#replayCount = next.length
    for (const resolve of next) resolve()
    if (this.#waiting.length > 0) this.#schedule()
  }
}
