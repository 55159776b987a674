import type { Accepted } from '../ports/broker.js'
import { formatPosition } from '../ports/position.js'

/** Options of `publish`. */
export interface PublishOptions {
  /** Message id, 1 to 64 characters of `[A-Za-z0-9_-]`. A second message of any server to the same key with the same id within the dedupe window is not delivered. */
  readonly id?: string
  /**
   * The trace that the message belongs to, as `traceparent` of W3C Trace Context; default: the active span of
   * OpenTelemetry. One that is not valid is ignored.
   */
  readonly traceparent?: string
  /** The message reaches live listeners only: it is not logged, although a rule covers its key. It has no position. */
  readonly ephemeral?: boolean
}

/** One message of `publishBatch`. */
export interface BatchMessage extends PublishOptions {
  readonly key: string
  /** See `publish`. */
  readonly payload: unknown
}

/** The result of a publish. */
export interface PublishResult {
  readonly duplicate: boolean
  /** Position in the broker's log, `epoch:offset.fingerprint`; absent when the broker keeps no log. */
  readonly position?: string
}

export function resultOf({ position, isDuplicate: duplicate }: Accepted): PublishResult {
  return position === undefined ? { duplicate } : { duplicate, position: formatPosition(position) }
}
