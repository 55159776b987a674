import type { MaybePromise } from '../base/maybe-promise.js'
import type { OutboxLevel } from '../ports/transport.js'
import type { ReplayPacer } from './pacer.js'

/** Options of {@link ReplayFlow}. */
export interface ReplayFlowOptions {
  readonly pacer: Pick<ReplayPacer, 'take' | 'wait'>
  /** Limit of the connection's outbox. */
  readonly maxOutboxBytes: number
  /** Bytes of the largest live message. */
  readonly maxMessageBytes: number
  /** Asks for a call of {@link ReplayFlow.drained}. */
  readonly awaitLevel: (level: OutboxLevel) => void
}

interface Page {
  readonly needsEmpty: boolean
  send(): void
}

/** Share of the outbox that replays may fill; the rest is for live messages. */
const REPLAY_SHARE = 1 / 2
/** As in the transport's level `low`. */
const LOW_SHARE = 1 / 4

/**
 * The replays of one connection: a page of each in turn, as its outbox has room. Requests for the next pages go to the
 * end of the queue, so replays that run together share the connection fairly.
 *
 * At most half of the outbox is used, as the transport reports it. So replays never close a connection as a slow
 * consumer, and nobody waits for time to pass.
 */
export class ReplayFlow {
  readonly #options: ReplayFlowOptions
  readonly #waiting: Page[] = []
  /** Waits for the outbox, or for a turn of the event loop. */
  #isWaiting = false
  #awaited: OutboxLevel | undefined
  /** Replayed bytes that may still wait in the outbox. */
  #unreadBytes = 0
  /** Its connection has closed: nothing waits, and nothing need be read. */
  isReleased = false

  constructor(options: ReplayFlowOptions) {
    this.#options = options
  }

  /**
   * Calls `send` when a page may be sent: now, or later in the order of the calls.
   * @param needsEmpty Waits until the outbox is empty, for a message that takes more than its share.
   */
  page<T>(send: () => MaybePromise<T>, needsEmpty = false): MaybePromise<T> {
    if (this.isReleased) return send()
    const isFree = this.#waiting.length === 0 && !this.#isWaiting && this.#hasRoom(needsEmpty)
    if (isFree && this.#options.pacer.take()) return send()
    return new Promise((resolve, reject) => {
      const settle = () => {
        try {
          resolve(send())
        } catch (error) {
          reject(error)
        }
      }
      this.#waiting.push({ needsEmpty, send: settle })
      this.#advance()
    })
  }

  /** Whether a message of this size may be the first of a page. In an empty outbox any message may. */
  fits(byteCount: number): boolean {
    return this.#unreadBytes === 0 || this.#unreadBytes + byteCount <= this.#maxBytes
  }

  /** Whether the outbox has room for the largest live message, behind the replayed bytes that may still wait. */
  get hasRoomForLive(): boolean {
    const { maxOutboxBytes, maxMessageBytes } = this.#options
    return this.#unreadBytes + maxMessageBytes <= maxOutboxBytes
  }

  /** Takes bytes that are about to be sent; `false` when too many wait already, unless forced. */
  take(byteCount: number, isForced: boolean): boolean {
    if (!isForced && this.#unreadBytes + byteCount > this.#maxBytes) return false
    this.#unreadBytes += byteCount
    return true
  }

  /** The outbox has fallen to the level that was asked for. */
  drained(): void {
    if (this.#awaited === undefined) return
    this.#unreadBytes = this.#awaited === 'empty' ? 0 : this.#options.maxOutboxBytes * LOW_SHARE
    this.#awaited = undefined
    this.#isWaiting = false
    this.#advance()
  }

  /** The connection has closed: nothing waits any more. */
  release(): void {
    this.isReleased = true
    for (const page of this.#waiting.splice(0)) page.send()
  }

  get #maxBytes(): number {
    return this.#options.maxOutboxBytes * REPLAY_SHARE
  }

  #hasRoom(needsEmpty: boolean): boolean {
    return this.#unreadBytes <= (needsEmpty ? 0 : this.#options.maxOutboxBytes * LOW_SHARE)
  }

  #advance(): void {
    while (!this.#isWaiting) {
      const [next] = this.#waiting
      if (next === undefined) return
      if (!this.#hasRoom(next.needsEmpty)) {
        this.#isWaiting = true
        this.#awaited = next.needsEmpty ? 'empty' : 'low'
        this.#options.awaitLevel(this.#awaited)
        return
      }
      if (this.#options.pacer.take()) this.#waiting.shift()?.send()
      else this.#waitForTurn()
    }
  }

  #waitForTurn(): void {
    this.#isWaiting = true
    this.#options.pacer.wait(() => {
      this.#isWaiting = false
      this.#waiting.shift()?.send()
      this.#advance()
    })
  }
}
