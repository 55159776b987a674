import type { WebMQError } from '../../protocol/errors.js'
import { callSafely } from '../events/call-safely.js'
import type { Gap } from '../events/events.js'
import type { ListenOptions, Message } from '../types.js'
import { type Backlog, type Receiver, type ReceiverContext, type Receiving, receiverOf } from './receiver.js'

/**
 * A receiver around another one, to which it passes everything. A part overrides what it does differently, and calls
 * `super` for the rest: `loaded(latest(handler), load)` then works.
 */
export class Wrapper<P = unknown> implements Receiver<P> {
  readonly inner: Receiver<P>
  /** Set by {@link Wrapper.attach}. */
  context!: ReceiverContext

  constructor(receiving: Receiving<P>) {
    this.inner = receiverOf(receiving)
  }

  get handler(): unknown {
    return this.inner.handler ?? this.inner
  }

  get options(): ListenOptions | undefined {
    return this.inner.options
  }

  get isSingleUse(): boolean {
    return this.inner.isSingleUse ?? false
  }

  get wantsState(): true | undefined {
    return this.inner.wantsState
  }

  attach(context: ReceiverContext): void {
    this.context = context
    this.inner.attach?.(context)
  }

  deliver(message: Message<P>, size?: number): unknown {
    return this.inner.deliver(message, size)
  }

  /** Passes on a message that was kept; an error goes to the event `error`, so that the others still follow. */
  handOver(message: Message<P>): void {
    callSafely(
      () => this.inner.deliver(message),
      (error) => this.context.report(error, message),
    )
  }

  caughtUp(): void {
    this.inner.caughtUp?.()
  }

  accepted(): void {
    this.inner.accepted?.()
  }

  gap(gap: Gap): void {
    this.inner.gap?.(gap)
  }

  down(): void {
    this.inner.down?.()
  }

  close(error: WebMQError | undefined): void {
    this.inner.close?.(error)
  }

  backlog(): Backlog | undefined {
    return this.inner.backlog?.()
  }
}
