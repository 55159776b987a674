/** A timer as Node gives it. */
class VirtualTimer {
  readonly #restart: () => void
  isActive = true

  constructor(restart: () => void) {
    this.#restart = restart
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  hasRef(): boolean {
    return this.isActive
  }

  refresh(): this {
    this.#restart()
    return this
  }

  [Symbol.toPrimitive](): number {
    return 0
  }

  [Symbol.dispose](): void {
    this.isActive = false
  }
}

interface Entry {
  readonly atMs: number
  readonly order: number
  readonly timer: VirtualTimer
  readonly call: () => void
}

const REAL = {
  setTimeout: globalThis.setTimeout,
  setInterval: globalThis.setInterval,
  setImmediate: globalThis.setImmediate,
  clearTimeout: globalThis.clearTimeout,
  clearInterval: globalThis.clearInterval,
  clearImmediate: globalThis.clearImmediate,
  dateNow: Date.now,
  performanceNow: performance.now,
  random: Math.random,
}
const BEGAN_AT_MS = Date.UTC(2026, 0, 1)

/**
 * Clock, timers and chance of this process: timers run in the order of their times, one after another, and what they
 * leave to microtasks runs between them. The same seed gives the same run.
 */
export class VirtualTime {
  static calls = 0
  nowMs = 0
  #order = 0
  /** A binary heap. */
  readonly #heap: Entry[] = []

  /** Replaces the globals until {@link uninstall}. */
  install(random: () => number): void {
    const start = (call: () => void, delayMs: number): VirtualTimer => {
      const timer: VirtualTimer = new VirtualTimer(() => this.#add(timer, call, delayMs))
      this.#add(timer, call, delayMs)
      return timer
    }
    const repeat = (call: () => void, delayMs: number): VirtualTimer => {
      const again = () => {
        this.#add(timer, again, delayMs)
        call()
      }
      const timer: VirtualTimer = new VirtualTimer(() => undefined)
      this.#add(timer, again, delayMs)
      return timer
    }
    const stop = (timer: VirtualTimer | undefined) => {
      if (timer !== undefined && timer !== null) timer.isActive = false
    }
    type Call = (...args: unknown[]) => void
    Object.assign(globalThis, {
      setTimeout: (call: Call, delayMs = 0, ...args: unknown[]) => start(() => call(...args), bounded(delayMs)),
      setInterval: (call: Call, delayMs = 0, ...args: unknown[]) => repeat(() => call(...args), bounded(delayMs)),
      setImmediate: (call: Call, ...args: unknown[]) => start(() => call(...args), 0),
      clearTimeout: stop,
      clearInterval: stop,
      clearImmediate: stop,
    })
    Date.now = () => BEGAN_AT_MS + Math.floor(this.nowMs)
    performance.now = () => this.nowMs
    Math.random = random
  }

  /** By the clock of the machine. */
  realMs(): number {
    return REAL.performanceNow.call(performance)
  }

  uninstall(): void {
    const { dateNow, performanceNow, random, ...timers } = REAL
    Object.assign(globalThis, timers)
    Date.now = dateNow
    performance.now = performanceNow
    Math.random = random
  }

  /** Runs everything up to this time. */
  async run(untilMs: number): Promise<void> {
    await settle()
    for (let next = this.#heap[0]; next !== undefined && next.atMs <= untilMs; next = this.#heap[0]) {
      this.#take()
      if (!next.timer.isActive) continue
      this.nowMs = Math.max(this.nowMs, next.atMs)
      next.call()
      VirtualTime.calls++
      await settle()
    }
    this.nowMs = untilMs
  }

  #add(timer: VirtualTimer, call: () => void, delayMs: number): void {
    const entry = { atMs: this.nowMs + delayMs, order: this.#order++, timer, call }
    const heap = this.#heap
    let at = heap.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(entry, heap[parent] as Entry)) break
      heap[at] = heap[parent] as Entry
      at = parent
    }
    heap[at] = entry
  }

  #take(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry, heap[child] as Entry)) child++
      if (!isBefore(heap[child] as Entry, last)) break
      heap[at] = heap[child] as Entry
      at = child
    }
    heap[at] = last
  }
}

/** As Node: not a number is the least. */
function bounded(delayMs: number): number {
  return Number.isNaN(delayMs) ? 1 : Math.max(1, delayMs)
}

function isBefore(one: Entry, other: Entry): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)
}

/** Resolves when no microtask and no tick is left. */
async function settle(): Promise<void> {
  await new Promise<void>((resolve) => {
    REAL.setImmediate(resolve)
  })
}
