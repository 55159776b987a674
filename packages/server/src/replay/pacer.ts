/** Replayed messages that are sent in one turn of the event loop, about a millisecond. Then timers and other connections run. */
const MAX_MESSAGES_PER_TURN = 500
/** Waiting replays that start in one turn when replays are short. */
const MAX_REPLAYS_PER_TURN = 64

/** Shares the event loop between replays and everything else, so that large replays do not delay other connections. */
export class ReplayPacer {
  #sentCount = 0
  #replayCount = 0
  /** In order of arrival; at most one per connection, whose other pages wait in its flow. */
  #waiting: (() => void)[] = []
  #isScheduled = false

  /** Resolves when a page may be replayed: at once, unless this turn is used up. */
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

  /** A replayed message is being sent. */
  sent(): void {
    this.#sentCount++
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#nextTurn())
  }

  /** Starts as many replays as fill a turn, if they are as long as those of the last turn. */
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
