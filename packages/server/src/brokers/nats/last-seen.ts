import type { JsMsg } from '@nats-io/jetstream'
import type { Position } from '../../ports/broker.js'

/**
 * The last message of the stream that this node has seen, logged or not. Sequence and time in nanoseconds identify it,
 * so it shows whether the stream still has the same messages.
 */
export class LastSeen {
  #epoch = ''
  #message: JsMsg | undefined

  get sequence(): number {
    return this.#message?.seq ?? 0
  }

  /** @param message Kept with its bytes. Its time is parsed only for a comparison, not for every message. */
  note(epoch: string, message: JsMsg): void {
    this.#epoch = epoch
    this.#message = message
  }

  /** Whether it is at this position or after it. */
  knows({ epoch, offset }: Position): boolean {
    return this.#epoch === epoch && this.sequence >= offset
  }

  is(message: JsMsg): boolean {
    return message.seq === this.sequence && message.timestampNanos === this.#message?.timestampNanos
  }
}
