/** Longer lists cost milliseconds of the event loop: a node of the transport `ws` has one for each connection. */
const SHORT_LENGTH = 1_000
const LONG_LIST_INTERVAL_MS = 60_000

export interface TypeCountStats {
  readonly count: number
  readonly byType: Readonly<Record<string, number>>
}

/** Counts what the process has, by type. Makes a list for each reading, but a long one at most once a minute. */
export class TypeCounts {
  readonly #types: () => readonly string[]
  #stats: TypeCountStats = { count: 0, byType: {} }
  #listedMs = Number.NEGATIVE_INFINITY

  /** @param types The type of each. */
  constructor(types: () => readonly string[]) {
    this.#types = types
  }

  read(nowMs: number): TypeCountStats {
    const isRecent = nowMs - this.#listedMs < LONG_LIST_INTERVAL_MS
    if (this.#stats.count > SHORT_LENGTH && isRecent) return this.#stats
    const byType: Record<string, number> = {}
    const types = this.#types()
    for (const type of types) byType[type] = (byType[type] ?? 0) + 1
    this.#listedMs = nowMs
    this.#stats = { count: types.length, byType }
    return this.#stats
  }
}
