import type { Gap } from '../events/events.js'
import type { ListenOptions, Message } from '../types.js'

/** What a {@link Loader} works with. */
export interface LoaderContext {
  /** Messages that are held while the app loads, at most. */
  readonly maxMessages: number
  /** Time before attempt number `attempt`, counted from 0. */
  backoffMs(attempt: number): number
  /** The app has loaded: what was held is to be handed over, but for what it has up to `position`. */
  onLoaded(held: readonly Message<unknown>[], position: string | undefined): void
  /** More came than can be held: what was held is lost. Returns what is told of it. */
  onOverflow(): Gap
  onError(error: unknown): void
}

/** Runs the app's `load`, and holds messages meanwhile, so that none is missed between what is loaded and what is live. */
export class Loader {
  readonly #load: NonNullable<ListenOptions['load']>
  readonly #context: LoaderContext
  #held: Message<unknown>[] = []
  #waiting: (() => void)[] = []
  /** Present from the first attempt until the app has loaded; aborted when the attempt counts no more. */
  #attempt: AbortController | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #failedAttempts = 0

  constructor(load: NonNullable<ListenOptions['load']>, context: LoaderContext) {
    this.#load = load
    this.#context = context
  }

  /** Whether the app loads, or is about to try again. */
  get isLoading(): boolean {
    return this.#attempt !== undefined
  }

  /** Resolves when the app has loaded, or need not any more. */
  whenLoaded(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Keeps a message for later, if it has to wait; returns whether it has. */
  hold(message: Message<unknown>): boolean {
    const attempt = this.#attempt
    if (!attempt) return false
    if (this.#held.push(message) > this.#context.maxMessages) {
      this.#held = []
      // Between two attempts nothing is lost: what the next one loads has it.
      if (!attempt.signal.aborted) this.#retry(this.#context.onOverflow())
    }
    return true
  }

  /** Lets the app load; if it does already, from the beginning. */
  start(gap?: Gap): void {
    this.#cancel()
    this.#attempt = new AbortController()
    const { signal } = this.#attempt
    const cause = gap ? 'gap' : 'initial'
    // Not at once: the app may not have been given its subscription yet.
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
    const held = this.#held
    this.#settle()
    this.#context.onLoaded(held, position)
  }

  #settle(): void {
    this.#attempt = undefined
    this.#held = []
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
