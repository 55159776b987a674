import type { TickWriter } from './tick-writer.js'

/** The interface of a target's script; `serveTarget` does the rest. */
export interface TargetServer {
  readonly port: number
  /** Of the software under test. */
  readonly version: string
  /**
   * Publishes one tick to everyone, as its users would.
   * @param writer Holds the message: `writer.write(…)` gives its bytes, valid until the next; `writer.object(…)` a
   * value.
   * @param key For targets with patterns: another key than that of all ticks.
   */
  publish(writer: TickWriter, seq: number, timeUs: number, key?: string): Promise<unknown> | undefined
  /** Appends one tick to the stream of a key, which the first one begins; only for targets with streams. */
  append?(writer: TickWriter, seq: number, timeUs: number, key: string): Promise<unknown>
  /**
   * Publishes one tick per writer, where that is cheaper than one by one; resolves when the server takes more. Absent:
   * one by one.
   */
  publishBatch?(writers: readonly TickWriter[], firstSeq: number, timeUs: number): Promise<unknown>
  /** Publishes a message to a key without listeners; only for targets with patterns. */
  publishTo?(key: string, payload: Uint8Array): void
  /** Most bytes that wait in the process for one connection; 0 when the kernel has everything. */
  waitingBytes(): number
  /**
   * Publishing waits above this many bytes per connection, so that nothing is lost. Absent: the server itself makes it
   * wait.
   */
  readonly maxWaitingBytes?: () => number
  readonly connectionCount: () => number
  /** Messages that the session layer has processed since the start. */
  readonly receivedCount: () => number
  /** Publishes that were refused for a time, since the start [P-10.7]. */
  readonly refusedCount?: () => number
}

/** Most bytes that may wait for all connections, in a server that buffers per connection. */
const MAX_WAITING_TOTAL_BYTES = 256 * 1_024 * 1_024
const MIN_WAITING_BYTES = 64 * 1_024
const MAX_WAITING_BYTES = 4 * 1_024 * 1_024

/** Most bytes that may wait for one connection where each has its own buffer. */
export function maxWaitingBytesOf(connectionCount: number): number {
  const share = MAX_WAITING_TOTAL_BYTES / Math.max(1, connectionCount)
  return Math.min(MAX_WAITING_BYTES, Math.max(MIN_WAITING_BYTES, share))
}
