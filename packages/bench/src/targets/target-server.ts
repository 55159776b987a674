import type { TickWriter } from './tick-writer.js'

/** What a target's script provides; `serveTarget` does the rest. */
export interface TargetServer {
  readonly port: number
  /** Of the software under test. */
  readonly version: string
  /**
   * Publishes one tick to everyone, the way its users would.
   * @param writer Holds the message: `writer.write(…)` gives its bytes, valid until the next; `writer.object(…)` a value.
   */
  publish(writer: TickWriter, seq: number, timeUs: number): Promise<unknown> | undefined
  /**
   * Publishes one tick per writer, where there is a cheaper way than one by one; resolves when the server takes more.
   * Absent: one by one.
   */
  publishBatch?(writers: readonly TickWriter[], firstSeq: number, timeUs: number): Promise<unknown>
  /** Publishes a message to a key that nobody listens to; only where there are patterns. */
  publishTo?(key: string, payload: Uint8Array): void
  /** What waits in the process for one connection, at most: 0 when everything is with the kernel. */
  waitingBytes(): number
  /** What may wait for one connection before publishing waits: nothing must be lost. Absent: the server says so itself. */
  readonly maxWaitingBytes?: () => number
  readonly connectionCount: () => number
  /** Messages that the session layer has processed since the start. */
  readonly receivedCount: () => number
}

/** What all connections together may have waiting in a server that buffers per connection. */
const MAX_WAITING_TOTAL_BYTES = 256 * 1_024 * 1_024
const MIN_WAITING_BYTES = 64 * 1_024
const MAX_WAITING_BYTES = 4 * 1_024 * 1_024

/** What may wait for one connection where each has a buffer of its own. */
export function maxWaitingBytesOf(connectionCount: number): number {
  const share = MAX_WAITING_TOTAL_BYTES / Math.max(1, connectionCount)
  return Math.min(MAX_WAITING_BYTES, Math.max(MIN_WAITING_BYTES, share))
}
