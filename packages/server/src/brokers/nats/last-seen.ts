import type { Position } from '../../ports/broker.js'
import type { AckSubject } from './ack-subject.js'

/**
 * The last message of the stream that this node has seen, whether it was for the log or not. No other message of the stream has had
 * the same place at the same nanosecond: so it tells whether the stream still has what it had.
 */
export class LastSeen {
  epoch = ''
  sequence = 0
  timeMs = 0
  timeNs = 0

  note(epoch: string, { sequence, timeMs, timeNs }: AckSubject): void {
    this.epoch = epoch
    this.sequence = sequence
    this.timeMs = timeMs
    this.timeNs = timeNs
  }

  /** Whether it is known when the message at its place was stored, and nothing after the place was seen without. */
  knows({ epoch, offset }: Position): boolean {
    return this.epoch === epoch && this.sequence >= offset
  }

  is({ sequence, timeMs, timeNs }: AckSubject): boolean {
    return sequence === this.sequence && timeMs === this.timeMs && timeNs === this.timeNs
  }
}
