import { checks } from '../../core/checks.js'
import { callSafely } from '../../core/events/call-safely.js'
import type { Gap } from '../../core/events/events.js'
import { type Schedule, scheduleOf } from '../../core/events/schedule.js'
import type { Backlog, Receiver, Receiving } from '../../core/listening/receiver.js'
import { Wrapper } from '../../core/listening/wrapper.js'
import { invalid } from '../../core/options.js'
import type { ListenOptions, Message } from '../../core/types.js'
import type { WebMQError } from '../../protocol/errors.js'

/** Default of `maxKeys`. */
const MAX_KEYS = 10_000

/** Options of {@link latest}. */
export interface LatestOptions {
  /** When messages are handed over: once per animation frame (default), or after a time in milliseconds. */
  readonly every?: 'frame' | number
  /**
   * Keys with a message that waits; default 10,000. Limits memory. With more keys, all of them are handed over at once, before
   * their time: nothing is lost, but a frame takes longer.
   */
  readonly maxKeys?: number
  /** `true`: the handler gets a list, once for all keys that have changed; default `false`. */
  readonly batch?: boolean
}

/** Gets the newest messages of all keys that have changed, in the order in which they first did so. */
export type BatchHandler<P> = (messages: readonly Message<P>[]) => unknown

/** One call of the handler for all keys that have changed, instead of one for each. */
export function latest<P>(handler: BatchHandler<P>, options: LatestOptions & { readonly batch: true }): Receiver<P>
/**
 * Hands over the newest message of each key, once per animation frame or interval: `listen('prices.*', latest(handler))`.
 * Older ones are left out, here and, with a server that can do so, already there (`overflow: 'latest'`). Every key ends at
 * its last message. In a hidden page, which has no frames, messages are handed over once per second.
 *
 * @throws {WebMQError} `E_OPTION_INVALID`, naming the option.
 */
export function latest<P>(receiving: Receiving<P>, options?: LatestOptions): Receiver<P>
export function latest<P>(receiving: Receiving<P> | BatchHandler<P>, options: LatestOptions = {}): Receiver<P> {
  checks.part?.('latest', options)
  return options.batch
    ? new LatestBatch(receiving as BatchHandler<P>, options)
    : new Latest(receiving as Receiving<P>, options)
}

class Latest<P> extends Wrapper<P> {
  readonly #later: Schedule
  readonly #maxKeys: number
  readonly #waiting = new Map<string, Message<P>>()
  /** Position of the last message before those that wait. */
  #handled: string | undefined
  #newest: string | undefined
  #onFlush: (() => void)[] = []
  #cancel: (() => void) | undefined

  constructor(receiving: Receiving<P>, { every = 'frame', maxKeys = MAX_KEYS }: LatestOptions) {
    super(receiving)
    if (!(maxKeys >= 1)) throw invalid('maxKeys')
    this.#later = scheduleOf(every)
    this.#maxKeys = maxKeys
  }

  override get options(): ListenOptions {
    return { overflow: 'latest', ...super.options }
  }

  override deliver(message: Message<P>): void {
    const { key, position } = message
    if (this.#waiting.size >= this.#maxKeys && !this.#waiting.has(key)) this.#flush()
    this.#waiting.set(key, message)
    this.#newest = position ?? this.#newest
    this.#schedule()
  }

  override accepted(): void {
    super.accepted()
    // Messages may have waited when the client was closed.
    if (this.#waiting.size > 0) this.#schedule()
  }

  override gap(gap: Gap): void {
    // They came before it.
    this.#flush()
    super.gap(gap)
  }

  override close(error: WebMQError | undefined): void {
    // The app itself wants no more now. If it opens the client again, they are handed over then.
    if (error) this.#flush()
    this.#cancel?.()
    this.#cancel = undefined
    for (const done of this.#onFlush.splice(0)) done()
    super.close(error)
  }

  override backlog(): Backlog | undefined {
    if (this.#waiting.size === 0) return super.backlog()
    return {
      position: this.#handled,
      whenHandled: async () => {
        await new Promise<void>((resolve) => this.#onFlush.push(resolve))
        await super.backlog()?.whenHandled()
      },
    }
  }

  /** Hands over what has waited. */
  pass(messages: readonly Message<P>[]): void {
    for (const message of messages) this.handOver(message)
  }

  #schedule(): void {
    this.#cancel ??= this.#later(() => this.#flush())
  }

  #flush(): void {
    this.#cancel?.()
    this.#cancel = undefined
    const messages = [...this.#waiting.values()]
    this.#waiting.clear()
    this.#handled = this.#newest
    if (messages.length > 0) this.pass(messages)
    for (const done of this.#onFlush.splice(0)) done()
  }
}

class LatestBatch<P> extends Latest<P> {
  readonly #handler: BatchHandler<P>

  constructor(handler: BatchHandler<P>, options: LatestOptions) {
    super({ handler, deliver: () => undefined }, options)
    this.#handler = handler
  }

  override pass(messages: readonly Message<P>[]): void {
    callSafely(
      () => this.#handler(messages),
      (error) => this.context.report(error),
    )
  }
}
