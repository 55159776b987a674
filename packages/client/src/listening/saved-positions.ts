import type { PositionStore } from '../client-options.js'
import { isPosition } from '../protocol/index.js'

/** Positions are written at most this often, and when the page goes away. */
const WRITE_INTERVAL_MS = 1_000

/** Patterns whose positions are kept; over it, those are forgotten that have not moved for longest. */
const MAX_PATTERNS = 100

/** What {@link SavedPositions} works with. */
export interface SavedPositionsContext {
  /** `session`: the page's `sessionStorage`. */
  readonly store: PositionStore | 'session'
  /** Tells clients of one page apart. */
  readonly name: string
  /** Positions up to which everything was handled, by pattern. */
  collect(): Iterable<readonly [pattern: string, position: string]>
  /** Called once at most: then the store is left alone. */
  onError(error: unknown): void
}

/** Positions that outlive the page: where the listens of the next one begin. */
export class SavedPositions {
  readonly #context: SavedPositionsContext
  readonly #item: string
  #positions: Map<string, string> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #hasFailed = false

  constructor(context: SavedPositionsContext) {
    this.#context = context
    this.#item = `webmq:${context.name}`
    // Not `beforeunload`, nor `unload`: a page that asks for them loses the back/forward cache.
    globalThis.addEventListener?.('pagehide', this.#write)
  }

  /** Where a former page has stopped. */
  get(pattern: string): string | undefined {
    return this.#read().get(pattern)
  }

  /** A position has moved. */
  touch(): void {
    this.#timer ??= setTimeout(this.#write, WRITE_INTERVAL_MS)
  }

  /** The app does not want the pattern any more. */
  forget(pattern: string): void {
    if (this.#read().delete(pattern)) this.touch()
  }

  /** Writes what is left. */
  close(): void {
    globalThis.removeEventListener?.('pagehide', this.#write)
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
    const positions = this.#read()
    for (const [pattern, position] of this.#context.collect()) {
      if (positions.get(pattern) === position) continue
      // Behind the others: those that have not moved for longest come first.
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

  /** A store that is full, forbidden or not there must not break the app. */
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
