import type { MaybePromise } from '../base/maybe-promise.js'
import type { ConnectionId, OutboxLevel } from '../ports/transport.js'
import type { Drains } from './drains.js'

/** The outbox of a connection, as replays see it. */
export interface ReplayOutbox {
  readonly drains: Pick<Drains, 'await'>
  /** Limit of a connection's outbox. */
  readonly maxOutboxBytes: number
  /** Bytes of the largest live message; default 0. */
  readonly maxMessageBytes?: number
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
  readonly #connection: ConnectionId
  readonly #outbox: ReplayOutbox
  readonly #pacer: ReplayPacer
  readonly #waiting: Page[] = []
  /** Waits for the outbox, or for a turn of the event loop. */
  #isWaiting = false
  #awaited: OutboxLevel | undefined
  /** Replayed bytes that may still wait in the outbox. */
  #unreadBytes = 0
  /** Its connection has closed: nothing waits, and nothing need be read. */
  isReleased = false

  constructor(connection: ConnectionId, outbox: ReplayOutbox, pacer: ReplayPacer) {
    this.#connection = connection
    this.#outbox = outbox
    this.#pacer = pacer
  }

  /**
   * Calls `send` when a page may be sent: now, or later in the order of the calls.
   * @param needsEmpty Waits until the outbox is empty, for a message that takes more than its share.
   */
  page<T>(send: () => MaybePromise<T>, needsEmpty = false): MaybePromise<T> {
    if (this.isReleased) return send()
    const isFree = this.#waiting.length === 0 && !this.#isWaiting && this.#hasRoom(needsEmpty)
    if (isFree && this.#pacer.take()) return send()
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
    const { maxOutboxBytes, maxMessageBytes = 0 } = this.#outbox
    return this.#unreadBytes + maxMessageBytes <= maxOutboxBytes
  }

  /** Takes bytes that are about to be sent; `false` when too many wait already, unless forced. */
  take(byteCount: number, isForced: boolean): boolean {
    if (!isForced && this.#unreadBytes + byteCount > this.#maxBytes) return false
    this.#unreadBytes += byteCount
    return true
  }

  /** The outbox has fallen to the level that was asked for. */
  #drained(): void {
    if (this.#awaited === undefined) return
    this.#unreadBytes = this.#awaited === 'empty' ? 0 : this.#outbox.maxOutboxBytes * LOW_SHARE
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
    return this.#outbox.maxOutboxBytes * REPLAY_SHARE
  }

  #hasRoom(needsEmpty: boolean): boolean {
    return this.#unreadBytes <= (needsEmpty ? 0 : this.#outbox.maxOutboxBytes * LOW_SHARE)
  }

  #advance(): void {
    while (!this.#isWaiting) {
      const [next] = this.#waiting
      if (next === undefined) return
      if (!this.#hasRoom(next.needsEmpty)) {
        this.#isWaiting = true
        this.#awaited = next.needsEmpty ? 'empty' : 'low'
        this.#outbox.drains.await(this.#connection, this.#awaited, () => this.#drained())
        return
      }
      if (this.#pacer.take()) this.#waiting.shift()?.send()
      else this.#waitForTurn()
    }
  }

  #waitForTurn(): void {
    this.#isWaiting = true
    this.#pacer.wait(() => {
      this.#isWaiting = false
      this.#waiting.shift()?.send()
      this.#advance()
    })
  }
}

/** Units of work of all replays in one turn of the event loop: about a millisecond. */
const UNITS_PER_TURN = 1_000
/** A page without its messages: a read that begins, and an answer. */
const PAGE_UNITS = 10

/** Shares the event loop between replays and everything else, so that large replays do not delay other connections. */
export class ReplayPacer {
  #usedUnits = 0
  /** In order of arrival; at most one per connection, whose other pages wait in its flow. */
  readonly #waiting: (() => void)[] = []
  #isScheduled = false

  /** Takes a turn for a page, if this turn of the event loop has one left and nobody waits. */
  take(): boolean {
    if (this.#waiting.length > 0 || this.#usedUnits >= UNITS_PER_TURN) return false
    this.spend(PAGE_UNITS)
    return true
  }

  /** Calls `run` when a page may be replayed, in a later turn of the event loop. */
  wait(run: () => void): void {
    this.#waiting.push(run)
    this.#schedule()
  }

  /** Notes work for replays in this turn of the event loop. */
  spend(units: number): void {
    this.#usedUnits += units
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#nextTurn())
  }

  #nextTurn(): void {
    this.#isScheduled = false
    // More was done than planned when pages were large: the next turns make up for it.
    this.#usedUnits = Math.max(0, this.#usedUnits - UNITS_PER_TURN)
    while (this.#usedUnits < UNITS_PER_TURN) {
      const next = this.#waiting.shift()
      if (next === undefined) break
      this.spend(PAGE_UNITS)
      next()
    }
    if (this.#waiting.length > 0 || this.#usedUnits > 0) this.#schedule()
  }
}
