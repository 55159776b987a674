/** Share of the capacity that must be free before another page is worth sending. */
const MIN_FREE_SHARE = 1 / 4
/** Pages that are remembered until the client asks for the next one. The oldest are forgotten first. */
const MAX_PAGES = 64

/** A page that was sent, and after which the client may ask for more. */
interface Page {
  readonly bytes: number
  readonly atMs: number
}

/**
 * How many replayed bytes one connection may get. Replays go into an outbox with a limit. A reconnect with many long
 * replays would overflow it, be closed as a slow consumer, and reconnect to the same. So replays use half of the outbox.
 *
 * Used bytes come back within a second, because a healthy client has read them by then. They come back at once when the
 * client asks for the next page, because it has read this one. A client that guesses where a page ends is sent more than
 * it has read, and is closed for it.
 */
export class ReplayAllowance {
  readonly #capacityBytes: number
  #takenBytes = 0
  #atMs = 0
  /** Taken since the last page ended. */
  #pageBytes = 0
  readonly #pages = new Map<string, Page>()

  /** @param capacityBytes Bytes that may be taken at once, and again per second. */
  constructor(capacityBytes: number) {
    this.#capacityBytes = capacityBytes
  }

  /**
   * Takes bytes; `false` when fewer are left.
   * @param isForced Takes them anyway; the debt must come back first.
   */
  take(byteCount: number, nowMs: number, isForced = false): boolean {
    this.#regain(nowMs)
    if (!isForced && this.#takenBytes + byteCount > this.#capacityBytes) return false
    this.#takenBytes += byteCount
    this.#pageBytes += byteCount
    return true
  }

  /** Ends a page: everything taken since the last call. @param page Its name; absent when nothing follows it. */
  endPage(page: string | undefined, nowMs: number): void {
    const bytes = this.#pageBytes
    this.#pageBytes = 0
    if (page === undefined) return
    const [oldest] = this.#pages.keys()
    if (this.#pages.size >= MAX_PAGES && oldest !== undefined) this.#pages.delete(oldest)
    this.#pages.set(page, { bytes, atMs: nowMs })
  }

  /** The client asks for what follows this page, so it has read the page. Unknown names are ignored. */
  onAsked(page: string, nowMs: number): void {
    const sent = this.#pages.get(page)
    if (sent === undefined) return
    this.#pages.delete(page)
    this.#regain(nowMs)
    const regainedBytes = (this.#capacityBytes * Math.max(0, nowMs - sent.atMs)) / 1_000
    this.#takenBytes = Math.max(0, this.#takenBytes - Math.max(0, sent.bytes - regainedBytes))
  }

  /** Time until another page may be sent; 0 means now. */
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
