import { parseJson } from '../base/parse-json.js'
import type { MessageAttributes } from './attributes.js'

// A roll-up is a message of the log that has a stream as one text [P-18.9]: its place is `<stream>:<sequence>:text`. It
// reaches no listener live. Its payload is `<JSON about the stream>\n<the text, as JSON, or the bytes>`.

/** How a read gives the messages of streams. */
export type StreamView =
  /** As listeners got them live. */
  | 'messages'
  /** A stream that has ended, and is rolled up, is one message with its whole text. */
  | 'texts'
  /**
   * Messages and roll-ups, these with what they say about the stream. No number bounds the read. A read of one key without a
   * start begins where its last roll-up of a stream that has ended stood.
   */
  | 'log'

const TEXT_PLACE = /^[^:]+:\d+:text$/
const DELETE_PLACE = /^[^:]+:\d+:delete(:|$)/
const NEWLINE = 0x0a

/** Whether the message has a stream as one text. */
export function isRollUp(attributes: MessageAttributes | undefined): boolean {
  return attributes?.stream !== undefined && TEXT_PLACE.test(attributes.stream)
}

/** Whether it has a stream that has ended. */
export function isFinalRollUp(attributes: MessageAttributes | undefined): boolean {
  return isRollUp(attributes) && attributes?.isInterim !== true
}

/** Whether it deletes a stream: all that the log has of it counts for nothing. */
export function isDelete(attributes: MessageAttributes | undefined): boolean {
  return attributes?.stream !== undefined && DELETE_PLACE.test(attributes.stream)
}

/** A message that is for the log alone: no listener gets it live. */
export function isForLogAlone(attributes: MessageAttributes | undefined): boolean {
  return attributes?.copyOf !== undefined || isRollUp(attributes)
}

/** Whether it may be the retained message of its key: of a stream, only its end as one text, and what deletes it. */
export function isState(attributes: MessageAttributes | undefined): boolean {
  return attributes?.stream === undefined || isFinalRollUp(attributes) || isDelete(attributes)
}

/** Both are views. Without a line break, which another program may have left out, all of it is text. */
export function partsOfRollUp(payload: Uint8Array): { readonly head: Uint8Array; readonly text: Uint8Array } {
  const at = payload.indexOf(NEWLINE)
  return { head: payload.subarray(0, Math.max(0, at)), text: payload.subarray(at + 1) }
}

/** Offset of the log at which the stream stood so; 0 if another program has written the roll-up. */
export function upToOf(payload: Uint8Array): number {
  try {
    const { upTo } = parseJson(partsOfRollUp(payload).head) as { readonly upTo?: unknown }
    return typeof upTo === 'number' ? upTo : 0
  } catch {
    return 0
  }
}
