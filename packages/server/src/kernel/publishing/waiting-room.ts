import { LogPace } from '../base/log-pace.js'
import type { BrokerRoom } from '../ports/broker.js'
import { type Author, type Behind, hasClientRoom } from './author.js'

/** A message that arrived so long ago is refused: its client knows better than we whether it is still worth anything. */
const MAX_HELD_MS = 1_000
/** One that was refused twice waits for longer, so that it is not refused again and again while others pass. */
const MAX_HELD_OFTEN_REFUSED_MS = 3_000
const OFTEN_REFUSED_COUNT = 2
/** How often those that have waited for too long are looked for, and the pace of the broker is measured. */
const LOOK_MS = 100
/** Share of the pace that is left after a look at which the broker was slower: it may have stood still for a moment. */
const PACE_DECAY = 0.97
/** A refused message comes again after this time at least [P-10.7], and at most. */
const MIN_RETRY_MS = 250
const MAX_RETRY_MS = 2_000
/** It comes so much before its turn, and waits again for that: the broker must not run dry. */
const EARLY_MS = 300
/** The same while nothing is known of the broker's pace. */
const UNKNOWN_RETRY_MS = 1_000
const LOG_INTERVAL_MS = 60_000
/** Times are spread by this share to both sides. */
const JITTER = 0.2

/** A message at the head of its connection, or a batch. */
interface Waiting {
  readonly author: Author
  readonly arrivedMs: number
  readonly messageCount: number
  readonly byteCount: number
  /** How often it was refused before. */
  readonly refusedCount: number
  /** It passes now. Hands its messages to the broker before it returns. */
  readonly go: () => void
  /** It is refused: it may come again after this time, 0 for one whose author has gone. */
  readonly refuse: (retryAfterMs: number) => void
}

interface WaitingRoomContext {
  /** Absent: nobody ever waits. */
  readonly room: BrokerRoom | undefined
  /** Most bytes that wait, with an overhead for each message. */
  readonly maxBytes: number
  /** Called once per minute at most, while messages wait. */
  readonly warn: (facts: object, text: string) => void
  /** A monotonic clock, in milliseconds. Default: `performance.now`. */
  readonly now?: () => number
  /** Default: `Math.random`. */
  readonly random?: () => number
}

interface Place extends Waiting {
  /** Messages that have arrived behind it. They come again with it. */
  behindCount: number
  behindBytes: number
  isRefused: boolean
}

/**
 * Publishers that wait for a broker which accepts messages more slowly than they come. One message of a connection waits
 * here, those behind it in the connection's inbox; first come, first served over connections. So the broker never runs dry
 * while somebody waits, and a short stall delays messages instead of refusing them.
 *
 * Who waits for longer than {@link MAX_HELD_MS} or {@link MAX_HELD_OFTEN_REFUSED_MS}, or beyond the bytes, is refused, with a
 * time computed from all that waits and the broker's pace. Times are given out one behind the other, so that clients do not
 * come back all at once.
 */
export class WaitingRoom {
  readonly #room: BrokerRoom | undefined
  readonly #maxBytes: number
  readonly #warn: WaitingRoomContext['warn']
  readonly #now: () => number
  readonly #random: () => number
  readonly #logPace = new LogPace(LOG_INTERVAL_MS)
  /** In the order of their coming. */
  readonly #places = new Set<Place>()
  #messageCount = 0
  #byteCount = 0
  #timer: NodeJS.Timeout | undefined
  #lastLookMs = 0
  #acceptedCount = 0
  #measuredMs = 0
  /** Messages that the broker accepts per millisecond; 0 while that is not known. */
  #perMs = 0
  /** When the next one that is refused may come again. */
  #nextRetryAtMs = 0

  constructor({ room, maxBytes, warn, now = () => performance.now(), random = Math.random }: WaitingRoomContext) {
    this.#room = room
    this.#maxBytes = maxBytes
    this.#warn = warn
    this.#now = now
    this.#random = random
    if (room !== undefined) room.onRoom = () => this.#release()
  }

  /** Messages that wait here, and behind those that do. */
  get messageCount(): number {
    return this.#messageCount
  }

  /** Whether a new publisher has to wait. Cost: none, it is asked for each publish. */
  get isNeeded(): boolean {
    return this.#room !== undefined && (this.#room.isFull || this.#places.size > 0)
  }

  /**
   * Lets a message wait. Calls `go` or `refuse` later, exactly once, or `refuse` at once.
   * @returns Counts a message that has arrived behind it. Too many bytes refuse the one that waits. Returns whether it was
   *   refused, now or before.
   */
  enter(waiting: Waiting): Behind {
    const place: Place = { ...waiting, behindCount: 0, behindBytes: 0, isRefused: false }
    this.#measure()
    this.#count(place.messageCount, place.byteCount)
    this.#places.add(place)
    this.#tell()
    if (this.#byteCount > this.#maxBytes) this.#refuse(place)
    if (this.#timer === undefined) {
      this.#lastLookMs = this.#now()
      this.#timer = setInterval(() => this.#look(), LOOK_MS).unref()
    }
    return (byteCount) => {
      if (!this.#places.has(place)) return place.isRefused
      // Infinite bytes could not be taken off again.
      const bytes = Math.min(byteCount, this.#maxBytes + 1)
      place.behindCount++
      place.behindBytes += bytes
      place.author.pendingBytes += bytes
      this.#count(1, bytes)
      if (this.#byteCount > this.#maxBytes || !hasClientRoom(place.author)) this.#refuse(place)
      return place.isRefused
    }
  }

  /** When as many messages may come again, behind those that were told a time before. */
  retryAfterMs(messageCount: number): number {
    const jitter = 1 + JITTER * (2 * this.#random() - 1)
    if (this.#perMs === 0) return Math.round(UNKNOWN_RETRY_MS * jitter)
    const nowMs = this.#now()
    const aheadCount = this.#messageCount + (this.#room?.pendingCount ?? 0)
    // Messages that wait now have passed by then, or are refused.
    const aheadMs = Math.min(aheadCount / this.#perMs, MAX_HELD_MS)
    const atMs = Math.min(nowMs + MAX_RETRY_MS, Math.max(this.#nextRetryAtMs, nowMs + aheadMs - EARLY_MS))
    this.#nextRetryAtMs = atMs + messageCount / this.#perMs
    return Math.max(MIN_RETRY_MS, Math.round((atMs - nowMs) * jitter))
  }

  #tell(): void {
    const earlierCount = this.#logPace.take(1, this.#now())
    if (earlierCount === undefined) return
    const facts = {
      waitedCount: earlierCount + 1,
      pendingCount: this.#room?.pendingCount,
      windowCount: this.#room?.windowCount,
    }
    this.#warn(facts, 'the broker accepts messages more slowly than they come: publishers wait')
  }

  #release(): void {
    if (this.#places.size === 0) return
    for (const place of this.#places) {
      if (this.#room?.isFull === true) return
      this.#leave(place)
      if (place.author.isClosed) place.refuse(0)
      else place.go()
    }
  }

  #look(): void {
    this.#measure()
    this.#release()
    const nowMs = this.#now()
    // A late look says that the process stood still. The answers of the broker may be there, and are read first.
    const isLate = nowMs - this.#lastLookMs > 2 * LOOK_MS
    this.#lastLookMs = nowMs
    const late: Place[] = []
    for (const place of this.#places) {
      if (place.author.isClosed) {
        this.#leave(place)
        place.refuse(0)
      } else if (!isLate && nowMs - place.arrivedMs >= maxHeldMs(place)) late.push(place)
    }
    // All leave before the first time is computed: none of them is ahead of another.
    for (const place of late) this.#leave(place)
    for (const place of late) this.#refuse(place)
    if (this.#places.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #refuse(place: Place): void {
    this.#leave(place)
    const retryAfterMs = this.retryAfterMs(place.messageCount + place.behindCount)
    place.isRefused = true
    place.refuse(retryAfterMs)
  }

  #leave(place: Place): void {
    if (!this.#places.delete(place)) return
    place.author.pendingBytes -= place.behindBytes
    this.#count(-place.messageCount - place.behindCount, -place.byteCount - place.behindBytes)
  }

  #count(messageCount: number, byteCount: number): void {
    this.#messageCount += messageCount
    this.#byteCount += byteCount
  }

  /** How fast the broker was since the last look, or a little slower than it was before. */
  #measure(): void {
    const nowMs = this.#now()
    const acceptedCount = this.#room?.acceptedCount ?? 0
    const sinceMs = nowMs - this.#measuredMs
    if (sinceMs < LOOK_MS) return
    // The first look after a rest only says where it begins.
    const perMs = this.#timer === undefined ? 0 : (acceptedCount - this.#acceptedCount) / sinceMs
    this.#perMs = Math.max(perMs, this.#perMs * PACE_DECAY)
    this.#acceptedCount = acceptedCount
    this.#measuredMs = nowMs
  }
}

function maxHeldMs({ refusedCount }: Place): number {
  return refusedCount < OFTEN_REFUSED_COUNT ? MAX_HELD_MS : MAX_HELD_OFTEN_REFUSED_MS
}
