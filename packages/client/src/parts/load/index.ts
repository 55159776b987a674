import { checks } from '../../core/checks.js'
import type { Awaitable } from '../../core/client-options.js'
import { backoffMs } from '../../core/connection/backoff.js'
import type { Gap } from '../../core/events/events.js'
import { isSeen } from '../../core/listening/position.js'
import type { Backlog, Receiver, Receiving } from '../../core/listening/receiver.js'
import { Wrapper } from '../../core/listening/wrapper.js'
import { invalid } from '../../core/options.js'
import type { Message } from '../../core/types.js'
import type { WebMQError } from '../../protocol/errors.js'

/** Default of `bufferMaxMessages`: more than the 10,000 messages that a server replays by default. */
const BUFFER_MAX_MESSAGES = 16_384

/** Why the app has to load. */
export interface LoadRequest {
  /** `gap`: messages may be missing; `gap` below has the reason. */
  readonly cause: 'initial' | 'gap'
  readonly gap?: Gap | undefined
  /** Aborted when the result is no longer needed: another gap occurred, or the subscription has ended. */
  readonly signal: AbortSignal
}

/**
 * Loads the state that the app derives from messages. May return a position: messages up to it are skipped, because the
 * loaded state includes them.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: an app that returns nothing returns a promise of void
export type Load = (request: LoadRequest) => Awaitable<string | undefined | void>

/** Options of {@link loaded}. */
export interface LoadOptions {
  /**
   * Limit of the messages that wait while the app loads; default 16,384. Limits memory when loading takes long. More
   * messages are a gap (`limit`), and `load` runs again.
   */
  readonly bufferMaxMessages?: number
}

/** A receiver whose app loads the state of before. */
export interface LoadedReceiver<P> extends Receiver<P> {
  /** Whether `load` is running, or about to be retried: the app's state may be out of date. */
  readonly isLoading: boolean
}

/**
 * Makes a receiver that loads state and continues it with messages, for example
 * `listen('room.#', loaded(handler, ({ signal }) => fetchRoom(signal)))`.
 *
 * `load` is called when the server has first accepted the listen, and again on every gap. Messages that arrive meanwhile
 * are handled afterwards, in order, so that none is missing between the loaded state and live messages. If it throws, the
 * error goes to the `error` event, and the client tries again after a random time of up to 500 ms, 1 s, 2 s, … as for
 * `reconnect`.
 * @throws {WebMQError} `E_OPTION_INVALID`, naming the option.
 */
export function loaded<P>(receiving: Receiving<P>, load: Load, options: LoadOptions = {}): LoadedReceiver<P> {
  checks.part?.('loaded', options)
  return new Loader(receiving, load, options)
}

class Loader<P> extends Wrapper<P> implements LoadedReceiver<P> {
  readonly #load: Load
  readonly #maxMessages: number
  #buffered: Message<P>[] = []
  #waiting: (() => void)[] = []
  /** Set from the first attempt until the app has loaded; aborted when the attempt is obsolete. */
  #attempt: AbortController | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #failedAttempts = 0
  #hasLoaded = false

  constructor(receiving: Receiving<P>, load: Load, { bufferMaxMessages = BUFFER_MAX_MESSAGES }: LoadOptions) {
    super(receiving)
    if (!(bufferMaxMessages >= 1)) throw invalid('bufferMaxMessages')
    this.#load = load
    this.#maxMessages = bufferMaxMessages
  }

  get isLoading(): boolean {
    return this.#attempt !== undefined
  }

  override deliver(message: Message<P>): unknown {
    const attempt = this.#attempt
    if (!attempt) return super.deliver(message)
    if (this.#buffered.push(message) > this.#maxMessages) {
      this.#buffered = []
      // Between two attempts nothing is lost: the next attempt loads the state with these messages.
      if (!attempt.signal.aborted) this.#retry(this.context.gap('limit'))
    }
    return undefined
  }

  override accepted(): void {
    super.accepted()
    if (!this.#hasLoaded && !this.isLoading) this.#start()
  }

  override gap(gap: Gap): void {
    super.gap(gap)
    this.#start(gap)
  }

  /** After `open`, the app loads again if it was loading now. */
  override close(error: WebMQError | undefined): void {
    if (this.isLoading) this.#hasLoaded = false
    this.#cancel()
    this.#settle()
    super.close(error)
  }

  override backlog(): Backlog | undefined {
    if (!this.isLoading) return super.backlog()
    return {
      position: undefined,
      whenHandled: async () => {
        await new Promise<void>((resolve) => this.#waiting.push(resolve))
        await this.backlog()?.whenHandled()
      },
    }
  }

  /** Starts `load`, or starts it again if it is running. */
  #start(gap?: Gap): void {
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
          this.context.report(error)
        },
      )
  }

  #retry(gap: Gap | undefined): void {
    this.#cancel()
    this.#timer = setTimeout(() => this.#start(gap), backoffMs(this.#failedAttempts++, this.context))
  }

  #cancel(): void {
    clearTimeout(this.#timer)
    this.#attempt?.abort()
  }

  #loaded(position: string | undefined): void {
    const { subscription } = this.context
    this.#failedAttempts = 0
    this.#hasLoaded = true
    const buffered = this.#buffered
    this.#settle()
    for (const message of buffered) {
      if (subscription.state !== 'closed' && !isSeen(message.position, position)) this.handOver(message)
    }
    this.context.skip(position)
  }

  #settle(): void {
    this.#attempt = undefined
    this.#buffered = []
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
