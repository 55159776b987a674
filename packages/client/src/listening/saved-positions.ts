import type { PositionStore } from '../client-options.js'
import { isPosition } from '../protocol/index.js'

/** Positions are written at most this often, and when the page goes away. */
const WRITE_INTERVAL_MS = 1_000

/** Limit of stored patterns. Beyond it, the pattern whose position moved least recently is removed. */
const MAX_PATTERNS = 100

/** Options and callbacks of {@link SavedPositions}. */
export interface SavedPositionsContext {
  /** `session`: the page's `sessionStorage`. */
  readonly store: PositionStore | 'session'
  /** Separates the clients of one page. */
  readonly name: string
  /** Positions up to which everything was handled, by pattern. */
  collect(): Iterable<readonly [pattern: string, position: string]>
  /** Called at most once: after a failure the store is no longer used. */
  onError(error: unknown): void
}

/** Positions that survive a reload: the next page starts its listens there. */
export class SavedPositions {
  readonly #context: SavedPositionsContext
  readonly #item: string
  #positions: Map<string, string> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #hasFailed = false

  constructor(context: SavedPositionsContext) {
    this.#context = context
    this.#item = `webmq:${context.name}`
  }

  /** Position at which the previous page stopped. */
  get(pattern: string): string | undefined {
    return this.#read().get(pattern)
  }

  /** A position has moved. */
  touch(): void {
    if (this.#timer !== undefined) return
    this.#timer = setTimeout(this.#write, WRITE_INTERVAL_MS)
    // Not `beforeunload` or `unload`: a page with such handlers loses the back/forward cache.
    globalThis.addEventListener?.('pagehide', this.#write)
  }

  /** The app has ended its last subscription of the pattern. */
  forget(pattern: string): void {
    if (this.#read().delete(pattern)) this.touch()
  }

  /** Writes pending changes. */
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
    for (const [pattern, position] of this.#context.collect()) {
      if (positions.get(pattern) === position) continue
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
    const { store, onError } = this.#context
    try {
      return action(store === 'session' ? globalThis.sessionStorage : store)
    } catch (error) {
      this.#hasFailed = true
      onError(error)
      return undefined
    }
  }
}
