/** Of the capacity, what must be free for another page to be worth sending. */
const MIN_FREE_SHARE = 1 / 4
/** Pages that are remembered until they are asked on from: of as many replays at once. The oldest are forgotten first. */
const MAX_PAGES = 64

/** What has been sent up to a position that the client was told to ask on from. */
interface Page {
  readonly bytes: number
  readonly atMs: number
}

/**
 * How many bytes a connection may still be sent as replay. Replays are sent at once, into an outbox that is limited: a
 * reconnect with many long replays would overflow it, be closed as a slow consumer, and reconnect to the same. So half
 * of the outbox is for replays, and what was taken comes back within a second, by when a healthy client has read it; at once, when the client
 * asks for the next page, for then it has read this one. (One that guesses where a page ends has more sent to it, and is closed for it.)
 */
export class ReplayAllowance {
  readonly #capacityBytes: number
  #takenBytes = 0
  #atMs = 0
  /** Taken since the last page ended. */
  #pageBytes = 0
  /** By the position that each ends with. */
  readonly #pages = new Map<string, Page>()

  /** @param capacityBytes What may be taken at once, and again per second. */
  constructor(capacityBytes: number) {
    this.#capacityBytes = capacityBytes
  }

  /**
   * Takes bytes, if there are as many.
   * @param isForced Takes them anyway; they have to come back before there are more.
   */
  take(byteCount: number, nowMs: number, isForced = false): boolean {
    this.#regain(nowMs)
    if (!isForced && this.#takenBytes + byteCount > this.#capacityBytes) return false
    this.#takenBytes += byteCount
    this.#pageBytes += byteCount
    return true
  }

  /** What was taken since the last call is a page. @param position From which the client will ask for the next; absent: for none. */
  endPage(position: string | undefined, nowMs: number): void {
    const bytes = this.#pageBytes
    this.#pageBytes = 0
    if (position === undefined) return
    const [oldest] = this.#pages.keys()
    if (this.#pages.size >= MAX_PAGES && oldest !== undefined) this.#pages.delete(oldest)
    this.#pages.set(position, { bytes, atMs: nowMs })
  }

  /** The client asks on from there: if a page ended so, it has read it. */
  onAsked(position: string, nowMs: number): void {
    const page = this.#pages.get(position)
    if (page === undefined) return
    this.#pages.delete(position)
    this.#regain(nowMs)
    const regainedBytes = (this.#capacityBytes * Math.max(0, nowMs - page.atMs)) / 1_000
    this.#takenBytes = Math.max(0, this.#takenBytes - Math.max(0, page.bytes - regainedBytes))
  }

  /** Time until a page may be sent again; 0 for now. */
  waitMs(nowMs: number): number {
    this.#regain(nowMs)
    const excessBytes = this.#takenBytes - this.#capacityBytes * (1 - MIN_FREE_SHARE)
    return Math.max(0, Math.ceil((excessBytes * 1_000) / this.#capacityBytes))
  }

  #regain(nowMs: number): void {
    const regainedBytes = (this.#capacityBytes * Math.max(0, nowMs - this.#atMs)) / 1_000
    this.#takenBytes = Math.max(0, this.#takenBytes - regainedBytes)
    this.#atMs = nowMs
  }
}
