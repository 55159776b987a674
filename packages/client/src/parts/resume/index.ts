import type { Positions, Resume, ResumeContext } from '../../core/client-options.js'
import { isSeen } from '../../core/listening/position.js'
import { isPosition } from '../../protocol/fields.js'

/** Positions are written at most this often, and when the page goes away. */
const WRITE_INTERVAL_MS = 1_000

/** Limit of stored patterns. Beyond it, the pattern whose position moved least recently is removed. */
const MAX_PATTERNS = 100

/** `sessionStorage`, `localStorage`, or an object with these methods. */
export interface PositionStore {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

/**
 * Stores positions across a reload of the page, by URL and pattern, so that a listen continues where the previous page
 * stopped: `setup({ url, resume: savedPositions() })`. If the store fails, the client emits one `error` event.
 * @param store Default: the page's `sessionStorage`, opened at the first listen, so that a server can render the page.
 */
export function savedPositions(store?: PositionStore): Resume {
  return (context) => new SavedPositions(store, context)
}

class SavedPositions implements Positions {
  readonly #store: PositionStore | undefined
  readonly #context: ResumeContext
  readonly #item: string
  #positions: Map<string, string> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #hasFailed = false

  constructor(store: PositionStore | undefined, context: ResumeContext) {
    this.#store = store
    this.#context = context
    this.#item = `webmq:${context.name}`
  }

  get(pattern: string): string | undefined {
    return this.#read().get(pattern)
  }

  touch(): void {
    if (this.#timer !== undefined) return
    this.#timer = setTimeout(this.#write, WRITE_INTERVAL_MS)
    // Not `beforeunload` or `unload`: a page with such handlers loses the back/forward cache.
    globalThis.addEventListener?.('pagehide', this.#write)
  }

  forget(pattern: string): void {
    if (this.#read().delete(pattern)) this.touch()
  }

  close(): void {
    if (this.#timer !== undefined) this.#write()
  }

  #read(): Map<string, string> {
    this.#positions ??= new Map(
      Object.entries(
        this.#attempt((store) => JSON.parse(store.getItem(this.#item) ?? '{}') as Record<string, string>) ?? {},
      ).filter(([, position]) => typeof position === 'string' && isPosition(position)),
    )
    return this.#positions
  }

  readonly #write = (): void => {
    clearTimeout(this.#timer)
    this.#timer = undefined
    globalThis.removeEventListener?.('pagehide', this.#write)
    const positions = this.#read()
    for (const [pattern, position] of oldest(this.#context.collect())) {
      if (position === undefined || positions.get(pattern) === position) continue
      // Moved to the end: the least recently moved positions come first.
      positions.delete(pattern)
      positions.set(pattern, position)
    }
    for (const pattern of positions.keys()) {
      if (positions.size <= MAX_PATTERNS) break
      positions.delete(pattern)
    }
    this.#attempt((store) =>
      positions.size > 0
        ? store.setItem(this.#item, JSON.stringify(Object.fromEntries(positions)))
        : store.removeItem(this.#item),
    )
  }

  /** A full, forbidden or missing store must not break the app. */
  #attempt<T>(action: (store: PositionStore) => T): T | undefined {
    if (this.#hasFailed) return undefined
    try {
      return action(this.#store ?? globalThis.sessionStorage)
    } catch (error) {
      this.#hasFailed = true
      this.#context.onError(error)
      return undefined
    }
  }
}

/** By pattern: everything up to here was handled by all subscriptions; `undefined` if that is unknown of one. */
function oldest(handled: Iterable<readonly [string, string | undefined]>): ReadonlyMap<string, string | undefined> {
  const oldest = new Map<string, string | undefined>()
  for (const [pattern, position] of handled) {
    const isOldest = !oldest.has(pattern) || position === undefined || isSeen(position, oldest.get(pattern))
    if (isOldest) oldest.set(pattern, position)
  }
  return oldest
}
