import type { Gap } from '../events/events.js'
import type { ListenOptions, Message } from '../types.js'

/** The loader's options and callbacks. */
export interface LoaderContext {
  /** Limit of the messages that are buffered while the app loads. */
  readonly maxMessages: number
  /** Time before attempt number `attempt`, counted from 0. */
  backoffMs(attempt: number): number
  /** The app has loaded. Deliver the buffered messages, except those up to `position`. */
  onLoaded(buffered: readonly Message<unknown>[], position: string | undefined): void
  /** The buffer is full, and its messages are lost. Returns the gap to report. */
  onOverflow(): Gap
  onError(error: unknown): void
}

/**
 * Runs the app's `load` and buffers messages meanwhile, so that none is missing between loaded state and live messages.
 */
export class Loader {
  readonly #load: NonNullable<ListenOptions['load']>
  readonly #context: LoaderContext
  #buffered: Message<unknown>[] = []
  #waiting: (() => void)[] = []
  /** Set from the first attempt until the app has loaded; aborted when the attempt is obsolete. */
  #attempt: AbortController | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #failedAttempts = 0

  constructor(load: NonNullable<ListenOptions['load']>, context: LoaderContext) {
    this.#load = load
    this.#context = context
  }

  /** Whether `load` is running, or about to be retried. */
  get isLoading(): boolean {
    return this.#attempt !== undefined
  }

  /** Resolves when the app has loaded, or the subscription has ended. */
  whenLoaded(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Buffers a message if `load` is running. Returns whether it did. */
  buffer(message: Message<unknown>): boolean {
    const attempt = this.#attempt
    if (!attempt) return false
    if (this.#buffered.push(message) > this.#context.maxMessages) {
      this.#buffered = []
      // Between two attempts nothing is lost: the next attempt loads the state with these messages.
      if (!attempt.signal.aborted) this.#retry(this.#context.onOverflow())
    }
    return true
  }

  /** Starts `load`, or starts it again if it is running. */
  start(gap?: Gap): void {
    this.#cancel()
    this.#attempt = new AbortController()
    const { signal } = this.#attempt
    const cause = gap ? 'gap' : 'initial'
    // In a later microtask: the app may not have its subscription yet.
    Promise.resolve()
      .then(() => (signal.aborted ? undefined : this.#load({ cause, gap, signal })))
      .then(
        (position) => signal.aborted || this.#loaded(position || undefined),
        (error) => {
          if (signal.aborted) return
          this.#retry(gap)
          this.#context.onError(error)
        },
      )
  }

  /** The subscription has ended. */
  stop(): void {
    this.#cancel()
    this.#settle()
  }

  #retry(gap: Gap | undefined): void {
    this.#cancel()
    this.#timer = setTimeout(() => this.start(gap), this.#context.backoffMs(this.#failedAttempts++))
  }

  #cancel(): void {
    clearTimeout(this.#timer)
    this.#attempt?.abort()
  }

  #loaded(position: string | undefined): void {
    this.#failedAttempts = 0
    const buffered = this.#buffered
    this.#settle()
    this.#context.onLoaded(buffered, position)
  }

  #settle(): void {
    this.#attempt = undefined
    this.#buffered = []
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
