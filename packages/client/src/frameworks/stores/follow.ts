import { clientOf, type GivenClient } from '../../core/of-client.js'
import type { ListenOptions, Message } from '../../core/types.js'
import type { WebMQError } from '../../protocol/errors.js'

/** A replay that a gap interrupts begins again after a pause; so often in a row, and then it is taken as it is. */
const MAX_RESTARTS = 6
const MIN_PAUSE_MS = 500

/** A replay counts as complete when nothing came for so long: a message that cannot be decoded is not handed over. */
const MAX_SILENCE_MS = 1_000

/** Gets the messages of a pattern: a replay, then live ones. */
export interface Follower {
  /** A replay begins: at first, and after every gap. */
  begin?(): void
  deliver(message: Message<unknown>): void
  /** The replay is complete. */
  loaded?(): void
  /** There is something new to show: not while a replay comes. */
  changed(): void
}

/**
 * Listens to a pattern. After every gap it listens anew with the same options, so that the replay and the live messages
 * are one sequence again.
 */
export class Following {
  readonly #follower: Follower
  readonly #listen: () => void
  #end: () => void = () => undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #restarts = 0
  #last: Message<unknown> | undefined
  /** Whether messages may be missing. */
  isStale = true
  /** Why the server has refused the listen, or ended it. */
  error: WebMQError | undefined

  constructor(client: GivenClient, pattern: string, options: ListenOptions, follower: Follower) {
    this.#follower = follower
    this.#listen = () => this.#begin(clientOf(client), pattern, options)
    this.#listen()
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#end()
  }

  #begin(client: ReturnType<typeof clientOf>, pattern: string, options: ListenOptions): void {
    const follower = this.#follower
    let endPrevious = this.#end
    let count = 0
    let expectedCount: number | undefined
    let isCurrent = true
    /** The first answer has a gap: the log is incomplete, and another replay would be, too. */
    let isExpectingGap = false
    this.#stale()
    const subscription = client.listen(
      pattern,
      (_, message) => {
        // What is logged comes with the next replay.
        if (!isCurrent && message.position !== undefined) return
        // Until the next listen is live, several ones get what is not logged.
        if (message === this.#last) return
        this.#last = message
        if (isCurrent && !message.replayed) this.#loaded()
        follower.deliver(message)
        count++
        if (!this.isStale) follower.changed()
        else if (isCurrent && expectedCount !== undefined) this.#await(count >= expectedCount)
      },
      options,
    )
    subscription.on('ready', ({ replayed, gap }) => {
      endPrevious()
      endPrevious = () => undefined
      if (!isCurrent) return
      if (this.error) follower.changed()
      this.error = undefined
      if (!this.isStale) return
      isExpectingGap = gap !== undefined && (count === 0 || this.#restarts >= MAX_RESTARTS)
      expectedCount = replayed
      this.#await(count >= replayed)
    })
    subscription.on('gap', () => {
      if (!isExpectingGap && isCurrent) {
        isCurrent = false
        this.#restart()
      }
      isExpectingGap = false
    })
    subscription.on('error', (error) => {
      if (!isCurrent) return
      this.error = error
      follower.changed()
    })
    this.#end = () => {
      isCurrent = false
      endPrevious()
      void subscription.close()
    }
  }

  #restart(): void {
    const wasStale = this.isStale
    this.#stale()
    if (wasStale) {
      this.#restarts = Math.min(this.#restarts + 1, MAX_RESTARTS)
      this.#timer = setTimeout(this.#listen, Math.random() * MIN_PAUSE_MS * 2 ** this.#restarts)
    } else this.#listen()
  }

  #stale(): void {
    clearTimeout(this.#timer)
    this.#follower.begin?.()
    if (this.isStale) return
    this.isStale = true
    this.#follower.changed()
  }

  #await(isComplete: boolean): void {
    clearTimeout(this.#timer)
    if (isComplete) this.#loaded()
    else this.#timer = setTimeout(() => this.#loaded(), MAX_SILENCE_MS)
  }

  #loaded(): void {
    if (!this.isStale) return
    clearTimeout(this.#timer)
    this.isStale = false
    this.error = undefined
    this.#restarts = 0
    this.#follower.loaded?.()
    this.#follower.changed()
  }
}
