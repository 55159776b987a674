import type { JsMsg } from '@nats-io/jetstream'
import type { Position } from '../../ports/broker.js'

/**
 * The last message of the stream that this node has seen, logged or not. No other message of the stream has had the same place at the
 * same nanosecond: so it tells whether the stream still has what it had.
 */
export class LastSeen {
  #epoch = ''
  #message: JsMsg | undefined

  get sequence(): number {
    return this.#message?.seq ?? 0
  }

  /** @param message Kept, with the bytes that it came with. Its time is read when it is compared, not for every message. */
  note(epoch: string, message: JsMsg): void {
    this.#epoch = epoch
    this.#message = message
  }

  /** Whether it stands at this position or after it. */
  knows({ epoch, offset }: Position): boolean {
    return this.#epoch === epoch && this.sequence >= offset
  }

  is(message: JsMsg): boolean {
    return message.seq === this.sequence && message.timestampNanos === this.#message?.timestampNanos
  }
}
