import { Outbox } from '../outbox.js'
import type { EventStream } from './stream.js'

const NOTHING = Buffer.alloc(0)

/** The outbox of event streams: their sockets collect what is written in a turn. */
export class StreamOutbox extends Outbox<EventStream, Uint8Array> {
  /** Writes bytes that are no message. */
  give(stream: EventStream, bytes: Uint8Array): void {
    stream.givenBytes += bytes.byteLength
    this.sentByteCount += bytes.byteLength
    stream.socket.write(bytes)
  }

  protected collect(stream: EventStream, bytes: Uint8Array): number {
    if (!stream.isCorked) stream.socket.cork()
    stream.isCorked = true
    this.give(stream, bytes)
    return stream.socket.writableLength
  }

  protected write(stream: EventStream): boolean {
    if (!stream.isCorked) return false
    stream.isCorked = false
    stream.socket.uncork()
    return stream.isOpen
  }

  /** Nothing is left out of a stream. */
  protected lags(): boolean {
    return false
  }

  protected byteLengthOf(bytes: Uint8Array): number {
    return bytes.byteLength
  }

  /** Node tells nothing of a write that the kernel takes later, unless more than its own limit waits. */
  protected override stillWaits(stream: EventStream): void {
    stream.socket.write(NOTHING, () => this.checkLevel(stream))
  }
}
