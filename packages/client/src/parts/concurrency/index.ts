import { checks } from '../../core/checks.js'
import { callSafely } from '../../core/events/call-safely.js'
import type { Gap } from '../../core/events/events.js'
import type { Backlog, Receiver, Receiving } from '../../core/listening/receiver.js'
import { Wrapper } from '../../core/listening/wrapper.js'
import { invalid } from '../../core/options.js'
import type { Message } from '../../core/types.js'
import type { WebMQError } from '../../protocol/errors.js'

/** Default of `maxMessages`. */
const MAX_MESSAGES = 1_024

/** Options of {@link concurrently}. */
export interface ConcurrentlyOptions {
  /** Messages that are handled at the same time, at least 1. With 1, each begins after the end of the previous one. */
  readonly concurrency: number
  /**
   * Live messages that wait for the handler; default 1,024. Limits memory. Beyond it, the client stops taking messages, and
   * asks for them again once those that wait are handled. Messages that are not logged are lost then, with a gap (`limit`).
   */
  readonly maxMessages?: number
}

/**
 * Awaits an async handler, for up to `concurrency` messages at a time: `listen('jobs', concurrently(async (job) => …, { concurrency: 1 }))`.
 * They begin in order. The position from which a reloaded page resumes passes a message once it and all earlier ones were
 * handled.
 *
 * @throws {WebMQError} `E_OPTION_INVALID`, naming the option.
 */
export function concurrently<P>(receiving: Receiving<P>, options: ConcurrentlyOptions): Receiver<P> {
  checks.part?.('concurrently', options)
  return new Concurrent(receiving, options)
}

/** A message that is being handled. */
interface Running {
  readonly position: string | undefined
  isDone: boolean
}

class Concurrent<P> extends Wrapper<P> {
  readonly #concurrency: number
  readonly #maxMessages: number
  #queue: Message<P>[] = []
  /** In the order in which they began. */
  #running: Running[] = []
  /** Messages whose handler has not returned. */
  #runningCount = 0
  /** Position up to which everything was handled. */
  #handled: string | undefined
  /** Position of the last message that was kept. */
  #kept: string | undefined
  /** Messages are not kept until the queue is empty. */
  #isFull = false
  /** Whether a message was lost that the log does not have. */
  #hasLost = false
  #isClosed = false
  #waiting: (() => void)[] = []

  constructor(receiving: Receiving<P>, { concurrency, maxMessages = MAX_MESSAGES }: ConcurrentlyOptions) {
    super(receiving)
    if (!(concurrency >= 1)) throw invalid('concurrency')
    if (!(maxMessages >= 1)) throw invalid('maxMessages')
    this.#concurrency = concurrency
    this.#maxMessages = maxMessages
  }

  override deliver(message: Message<P>): void {
    // The client asks for the next page of a replay when this one is handled, so a replay is no flood.
    if (this.#isFull || (!message.replayed && this.#queue.length >= this.#maxMessages)) {
      this.#isFull = true
      this.#hasLost ||= message.position === undefined || this.#kept === undefined
      return
    }
    this.#kept = message.position ?? this.#kept
    this.#queue.push(message)
    this.#pump()
  }

  override accepted(): void {
    this.#isClosed = false
    super.accepted()
    this.#pump()
  }

  override gap(gap: Gap): void {
    this.#isClosed = false
    super.gap(gap)
    this.#pump()
  }

  /** The next connection continues after what was kept. */
  override down(): void {
    this.#askAgain()
    super.down()
  }

  override close(error: WebMQError | undefined): void {
    this.#askAgain()
    // The app itself wants no more now. If it opens the client again, the rest is handled then.
    this.#isClosed = error === undefined
    this.#settle()
    super.close(error)
  }

  override backlog(): Backlog | undefined {
    if (this.#queue.length === 0 && this.#runningCount === 0) return super.backlog()
    return {
      position: this.#handled,
      whenHandled: async () => {
        await new Promise<void>((resolve) => this.#waiting.push(resolve))
        await super.backlog()?.whenHandled()
      },
    }
  }

  #pump(): void {
    while (this.#runningCount < this.#concurrency && this.#queue.length > 0 && !this.#isClosed) {
      const message = this.#queue.shift() as Message<P>
      void this.#run(message)
    }
  }

  async #run(message: Message<P>): Promise<void> {
    const running: Running = { position: message.position, isDone: false }
    this.#running.push(running)
    this.#runningCount++
    try {
      await this.inner.deliver(message)
    } catch (error) {
      this.context.report(error, message)
    }
    running.isDone = true
    this.#runningCount--
    while (this.#running[0]?.isDone) this.#handled = this.#running.shift()?.position ?? this.#handled
    this.#pump()
    if (this.#queue.length > 0 || this.#runningCount > 0) return
    this.#askAgain()
    this.#settle()
  }

  /** Asks for the messages that were not kept. */
  #askAgain(): void {
    if (!this.#isFull) return
    this.#isFull = false
    if (this.#kept !== undefined) this.context.again(this.#kept)
    if (!this.#hasLost) return
    this.#hasLost = false
    const gap = this.context.gap('limit')
    callSafely(
      () => super.gap(gap),
      (error) => this.context.report(error),
    )
  }

  #settle(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
