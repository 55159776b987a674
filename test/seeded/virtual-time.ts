import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import timersPromises from 'node:timers/promises'

/** A timer as Node gives it. */
class VirtualTimer {
  readonly #restart: () => void
  isActive = true
  /** How often it was started: what is left of earlier times does nothing. */
  startCount = 0

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

  /** As Node: a timer that has fired fires again. */
  refresh(): this {
    this.isActive = true
    this.startCount++
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
  readonly startCount: number
  readonly call: () => void
}

type Call = (...args: unknown[]) => void
type Start = (call: Call, delayMs?: number, ...args: unknown[]) => unknown

const REAL = {
  setTimeout: globalThis.setTimeout as unknown as Start,
  setInterval: globalThis.setInterval as unknown as Start,
  setImmediate: globalThis.setImmediate as unknown as (call: Call, ...args: unknown[]) => unknown,
  clearTimeout: globalThis.clearTimeout as (timer: unknown) => void,
  clearImmediate: globalThis.clearImmediate as (timer: unknown) => void,
  Date: globalThis.Date,
  dateNow: Date.now,
  performanceNow: performance.now.bind(performance),
  random: Math.random,
  randomBytes: crypto.randomBytes,
  randomUUID: crypto.randomUUID,
  getRandomValues: crypto.webcrypto.getRandomValues.bind(crypto.webcrypto),
  sleep: timersPromises.setTimeout,
  nextTurn: timersPromises.setImmediate,
}
/**
 * Runs ticks and microtasks until none is left, as Node does behind each timer (`process._tickCallback`). Another turn of
 * its loop for each timer took a third of a schedule.
 */
const settle = (process as unknown as { readonly _tickCallback: () => void })._tickCallback
/** Nobody draws as much for one id. */
const MAX_SINGLE_BYTES = 64
const BEGAN_AT_MS = Date.UTC(2026, 0, 1)

/** Whose clock, timers and chance this process has; `undefined`: its own. */
let current: VirtualTime | undefined

/**
 * Clock, timers and chance of this process: timers run in the order of their times, one after another, and what they
 * leave to microtasks and ticks runs between them. The same seed gives the same run.
 */
export class VirtualTime {
  nowMs = 0
  /** Timers that have run. */
  callCount = 0
  /** Called behind each timer, and all that it has left to ticks and microtasks. */
  onCalled: (() => void) | undefined
  readonly random: () => number
  #order = 0
  /** A binary heap. */
  readonly #heap: Entry[] = []

  /** For what is drawn for many at once, whenever that is used up: it leaves the rest of the run as it is. */
  readonly poolRandom: () => number

  constructor(random: () => number, poolRandom: () => number) {
    this.random = random
    this.poolRandom = poolRandom
  }

  /** The process has this clock until {@link uninstall}. */
  install(): void {
    current = this
  }

  uninstall(): void {
    current = undefined
  }

  /** By the clock of the machine. */
  realMs(): number {
    return REAL.performanceNow()
  }

  start(call: () => void, delayMs: number): VirtualTimer {
    const timer: VirtualTimer = new VirtualTimer(() => this.#add(timer, call, delayMs))
    this.#add(timer, call, delayMs)
    return timer
  }

  repeat(call: () => void, delayMs: number): VirtualTimer {
    const again = () => {
      this.#add(timer, again, delayMs)
      call()
    }
    const timer: VirtualTimer = new VirtualTimer(() => this.#add(timer, again, delayMs))
    this.#add(timer, again, delayMs)
    return timer
  }

  /** Runs everything up to this time. */
  async run(untilMs: number): Promise<void> {
    await turn()
    await turn(() => {
      for (let next = this.#heap[0]; next !== undefined && next.atMs <= untilMs; next = this.#heap[0]) {
        this.#take()
        if (!next.timer.isActive || next.startCount !== next.timer.startCount) continue
        this.nowMs = Math.max(this.nowMs, next.atMs)
        next.call()
        this.callCount++
        settle()
        this.onCalled?.()
      }
    })
    this.nowMs = untilMs
  }

  #add(timer: VirtualTimer, call: () => void, delayMs: number): void {
    const entry = { atMs: this.nowMs + delayMs, order: this.#order++, timer, startCount: timer.startCount, call }
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
function bounded(delayMs: unknown): number {
  const number = Number(delayMs ?? 1)
  return Number.isNaN(number) ? 1 : Math.max(1, number)
}

function isBefore(one: Entry, other: Entry): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)
}

/** Does this in a turn of its own of Node's loop: no microtask and no tick is left then. */
function turn(act?: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    REAL.setImmediate(() => {
      try {
        act?.()
        resolve()
      } catch (error) {
        reject(error)
      }
    })
  })
}

/** Replaces what libraries keep from when they are loaded, too: once, before they are, and for as long as the process lives. */
function replace(): void {
  const clear = (real: (timer: unknown) => void) => (timer: unknown) => {
    if (timer instanceof VirtualTimer) timer.isActive = false
    else real(timer)
  }
  const clearTimer = clear(REAL.clearTimeout)
  Object.assign(globalThis, {
    setTimeout: (call: Call, delayMs?: number, ...args: unknown[]) =>
      current?.start(() => call(...args), bounded(delayMs)) ?? REAL.setTimeout(call, delayMs, ...args),
    setInterval: (call: Call, delayMs?: number, ...args: unknown[]) =>
      current?.repeat(() => call(...args), bounded(delayMs)) ?? REAL.setInterval(call, delayMs, ...args),
    setImmediate: (call: Call, ...args: unknown[]) =>
      current?.start(() => call(...args), 0) ?? REAL.setImmediate(call, ...args),
    clearTimeout: clearTimer,
    clearInterval: clearTimer,
    clearImmediate: clear(REAL.clearImmediate),
    Date: class extends REAL.Date {
      static override [Symbol.hasInstance](value: unknown): boolean {
        return value instanceof REAL.Date
      }

      constructor(...args: unknown[]) {
        if (args.length === 0) super(Date.now())
        else super(...(args as [number]))
      }
    },
  })
  Date.now = () => (current === undefined ? REAL.dateNow() : BEGAN_AT_MS + Math.floor(current.nowMs))
  performance.now = () => current?.nowMs ?? REAL.performanceNow()
  Math.random = () => (current?.random ?? REAL.random)()
  const getRandomValues = <Kind extends ArrayBufferView>(view: Kind): Kind => {
    if (current === undefined) return REAL.getRandomValues(view as unknown as Uint8Array) as unknown as Kind
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
    const random = bytes.length > MAX_SINGLE_BYTES ? current.poolRandom : current.random
    for (let at = 0; at < bytes.length; at++) bytes[at] = Math.floor(random() * 256)
    return view
  }
  Object.defineProperty(globalThis.crypto, 'getRandomValues', { value: getRandomValues })
  Object.assign(crypto, {
    randomBytes: (length: number, told?: (error: Error | null, bytes: Buffer) => void) =>
      current === undefined
        ? told === undefined
          ? REAL.randomBytes(length)
          : REAL.randomBytes(length, told)
        : getRandomValues(Buffer.alloc(length)),
    randomUUID: () => {
      if (current === undefined) return REAL.randomUUID()
      const hex = getRandomValues(Buffer.alloc(16)).toString('hex')
      return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20)].join(
        '-',
      )
    },
  })
  Object.assign(timersPromises, { setTimeout: sleep, setImmediate: nextTurn })
  syncBuiltinESMExports()
}

interface Options {
  readonly signal?: AbortSignal
}

function sleep(delayMs: number, value: unknown, options?: Options): Promise<unknown> {
  if (current === undefined) return REAL.sleep(delayMs, value, options)
  return new Promise((resolve, reject) => {
    const signal = options?.signal
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve(value)
    }, delayMs)
    signal?.addEventListener('abort', abort)
    if (signal?.aborted === true) abort()
  })
}

function nextTurn(value: unknown, options?: Options): Promise<unknown> {
  if (current === undefined) return REAL.nextTurn(value, options)
  return new Promise((resolve) => {
    setImmediate(() => resolve(value))
  })
}

replace()
