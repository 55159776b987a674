/** A look that finds nothing is one silence; two intervals of them end it. Eight would be more than two. */
const LOOKS_PER_INTERVAL = 4
const MAX_SILENT_LOOKS = 7

/** What a {@link Heartbeat} needs to know. */
export interface HeartbeatOptions {
  readonly intervalMs: number
  /** Called once an interval. */
  beat(): void
  /** Called once, when one of the ways was silent for two intervals; `way` says which. */
  silent(way: string): void
}

/** Something that is heard from. */
export class HeardWay {
  readonly name: string
  silentLooks = 0
  #wasHeard = false

  constructor(name: string) {
    this.name = name
  }

  readonly heard = (): void => {
    this.#wasHeard = true
  }

  look(): number {
    this.silentLooks = this.#wasHeard ? 0 : this.silentLooks + 1
    this.#wasHeard = false
    return this.silentLooks
  }
}

/**
 * Beats, and tells when something is no longer heard from. It looks more often than it beats and counts looks, not
 * time: a node that was busy or asleep for long finds that out in one look, and then reads what has come meanwhile.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions
  readonly #ways: readonly HeardWay[]
  readonly #timer: NodeJS.Timeout
  #looks = 0

  constructor(ways: readonly HeardWay[], options: HeartbeatOptions) {
    this.#ways = ways
    this.#options = options
    this.#timer = setInterval(() => this.#look(), options.intervalMs / LOOKS_PER_INTERVAL)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    for (const way of this.#ways) {
      if (way.look() < MAX_SILENT_LOOKS) continue
      this.stop()
      this.#options.silent(way.name)
      return
    }
    if (++this.#looks % LOOKS_PER_INTERVAL === 0) this.#options.beat()
  }
}
