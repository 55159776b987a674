import type { WebMQClient } from '../../core/client.js'
import { callSafely } from '../../core/events/call-safely.js'
import { type Schedule, scheduleOf } from '../../core/events/schedule.js'
import type { Receiver, ReceiverContext } from '../../core/listening/receiver.js'
import { clientOf, type GivenClient } from '../../core/of-client.js'
import { invalid } from '../../core/options.js'
import type { Message, Subscription } from '../../core/types.js'
import { WebMQError } from '../../protocol/errors.js'
import type { StateChanges, StateOptions, StateSnapshot, StateStore } from './types.js'

const MAX_KEYS = 10_000
const MAX_BYTES = 16_777_216
/** A state that has a gap while it arrives is asked for again after this time: the next answer may have one, too. */
const REFILL_MS = 100

/** The value of a key, and its size on the wire. */
interface Value<P> {
  readonly payload: P
  readonly size: number
}

/**
 * Implements a {@link StateStore}. Messages go to `#values` at once; listeners and readers see them at the next
 * notification.
 *
 * A gap means that changes may be missing. The store then listens anew, without a position, and gets the whole state: it
 * fills `#values` from empty, and shows the old state until the new one is complete.
 */
export class LiveStateStore<P> implements StateStore<P> {
  readonly pattern: string
  readonly ready: Promise<void>
  #resolve: () => void = () => undefined
  #reject: (error: WebMQError) => void = () => undefined
  readonly #client: GivenClient
  readonly #maxKeys: number
  readonly #maxBytes: number
  readonly #schedule: Schedule
  readonly #listeners = new Set<(changes: StateChanges<P>) => unknown>()
  #subscription: Subscription | undefined
  #report: ReceiverContext['report'] = () => undefined

  /** What was received. */
  #values = new Map<string, Value<P>>()
  #bytes = 0
  #isStale = true
  #error: WebMQError | undefined
  /** The state is arriving from the beginning; nothing of it is shown before it is complete. */
  #isFilling = true
  /** What the present listen brings has a gap: it is never called the state, and a new listen is about to begin. */
  #isGapped = false
  #isClosed = false

  /** What is shown. */
  readonly #shown = new Map<string, P>()
  #isShownStale = true
  #shownError: WebMQError | undefined
  #snapshot: StateSnapshot<P> | undefined
  /** Keys that have changed since the last notification. */
  readonly #changed = new Set<string>()
  #cancel: (() => void) | undefined

  /** @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID`. */
  constructor(client: GivenClient, pattern: string, options: StateOptions) {
    const { every, maxKeys = MAX_KEYS, maxBytes = MAX_BYTES } = options
    if (!(maxKeys >= 1)) throw invalid('maxKeys')
    if (!(maxBytes >= 1)) throw invalid('maxBytes')
    this.#client = client
    this.pattern = pattern
    this.#maxKeys = maxKeys
    this.#maxBytes = maxBytes
    this.#schedule = every === undefined ? atEndOfTurn : scheduleOf(every)
    this.ready = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // `ready` is optional: ignoring its rejection must not crash the process.
    this.ready.catch(() => undefined)
    this.#listen()
  }

  get isStale(): boolean {
    return this.#isShownStale
  }

  get error(): WebMQError | undefined {
    return this.#shownError
  }

  get size(): number {
    return this.#shown.size
  }

  get(key: string): P | undefined {
    return this.#shown.get(key)
  }

  entries(): IterableIterator<[string, P]> {
    return this.#shown.entries()
  }

  getSnapshot(): StateSnapshot<P> {
    this.#snapshot ??= { entries: new Map(this.#shown), isStale: this.#isShownStale, error: this.#shownError }
    return this.#snapshot
  }

  subscribe(listener: (changes: StateChanges<P>) => unknown): () => void {
    // A function of its own: the same listener may be added twice.
    const added = (changes: StateChanges<P>) => listener(changes)
    this.#listeners.add(added)
    return () => this.#listeners.delete(added)
  }

  close(): void {
    this.#end(undefined)
    void this.#subscription?.close()
  }

  // In runtimes without `Symbol.dispose`, this is a method named "undefined" that nobody calls.
  [Symbol.dispose](): void {
    this.close()
  }

  #listen(): void {
    const receiver: Receiver<P> = {
      // The server may leave out a value that a newer one replaces: the state is the same.
      options: { overflow: 'latest' },
      wantsState: true,
      attach: (context) => {
        this.#report = context.report
      },
      deliver: (message, size) => this.#receive(message, size ?? 0),
      caughtUp: () => this.#caughtUp(),
      gap: () => this.#begin(),
      down: () => this.#setStale(true),
      close: (error) => this.#closed(error),
    }
    // The types of topics are those of `state`.
    this.#subscription = (clientOf(this.#client) as WebMQClient<object>).listen(this.pattern, receiver as Receiver)
  }

  /** Changes may be missing: asks for the whole state. */
  #begin(): void {
    const lost = this.#subscription
    this.#setStale(true)
    const listenAnew = () => {
      if (this.#isClosed || this.#subscription !== lost) return
      this.#subscription = undefined
      void lost?.close()
      this.#isFilling = true
      this.#isGapped = false
      this.#values = new Map()
      this.#bytes = 0
      this.#listen()
    }
    this.#isGapped = true
    // Not from inside a call of the subscription.
    if (this.#isFilling) setTimeout(listenAnew, REFILL_MS)
    else queueMicrotask(listenAnew)
  }

  /** @param size Of the payload; 0 for a removal. */
  #receive({ key, payload, position, stream }: Message<P>, size: number): void {
    // A message that is not logged is not part of the state; of a stream, only the whole text is [P-18.9].
    if (position === undefined || this.#isClosed || (stream && !stream.endsWith(':text'))) return
    const before = this.#values.get(key)
    if (before !== undefined) this.#bytes -= before.size
    if (size === 0) this.#values.delete(key)
    else {
      this.#values.set(key, { payload, size })
      this.#bytes += size
    }
    if (this.#values.size > this.#maxKeys || this.#bytes > this.#maxBytes) {
      const limit = this.#values.size > this.#maxKeys ? `${this.#maxKeys} keys` : `${this.#maxBytes} bytes`
      const error = new WebMQError('E_STATE_LIMIT', { detail: `${this.pattern}: more than ${limit}` })
      this.#report(error)
      this.#end(error)
      void this.#subscription?.close()
      return
    }
    if (this.#values.has(key) || this.#shown.has(key)) this.#changed.add(key)
    else this.#changed.delete(key)
    if (!this.#isFilling) this.#notifyLater()
  }

  #caughtUp(): void {
    if (this.#isGapped) return
    if (this.#isFilling) {
      this.#isFilling = false
      for (const key of this.#shown.keys()) this.#changed.add(key)
    }
    this.#error = undefined
    this.#setStale(false)
  }

  /** The listen was refused, or the client is closed: it may be opened again. */
  #closed(error: WebMQError | undefined): void {
    if (this.#isClosed) return
    this.#error = error
    if (error !== undefined) this.#reject(error)
    this.#setStale(true)
  }

  #end(error: WebMQError | undefined): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#isStale = true
    this.#error = error
    // What has not been shown is not complete.
    this.#changed.clear()
    this.#reject(error ?? new WebMQError('E_CLOSED', { detail: this.pattern }))
    this.#notifyLater()
  }

  #setStale(isStale: boolean): void {
    if (this.#isClosed) return
    this.#isStale = isStale
    this.#notifyLater()
  }

  #notifyLater(): void {
    this.#cancel ??= this.#schedule(() => {
      this.#cancel = undefined
      this.#notify()
    })
  }

  #notify(): void {
    const set = new Map<string, P>()
    const removed = new Set<string>()
    if (!this.#isFilling) {
      for (const key of this.#changed) this.#show(key, set, removed)
      this.#changed.clear()
    }
    const isSame = this.#isShownStale === this.#isStale && this.#shownError === this.#error
    this.#isShownStale = this.#isStale
    this.#shownError = this.#error
    if (isSame && set.size === 0 && removed.size === 0) return
    this.#snapshot = undefined
    if (!this.#isStale) this.#resolve()
    for (const listener of this.#listeners) callSafely(() => listener({ set, removed }), this.#report)
  }

  #show(key: string, set: Map<string, P>, removed: Set<string>): void {
    const value = this.#values.get(key)
    if (value === undefined) {
      if (this.#shown.delete(key)) removed.add(key)
      return
    }
    const hadKey = this.#shown.has(key)
    if (hadKey && this.#shown.get(key) === value.payload) return
    this.#shown.set(key, value.payload)
    set.set(key, value.payload)
  }
}

const atEndOfTurn: Schedule = (run) => {
  let isCancelled = false
  queueMicrotask(() => isCancelled || run())
  return () => {
    isCancelled = true
  }
}
