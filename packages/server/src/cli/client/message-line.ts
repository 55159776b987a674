import type { Gap, Message } from 'webmq-client'
import { printable } from '../printable.js'

/** How messages are written. */
export interface LineFormat {
  /** One JSON object per message. */
  readonly json: boolean
  /** Lines go to a terminal, so what others sent is escaped. */
  readonly isTerminal: boolean
}

/**
 * A message as one line: `<key> <payload as JSON>`, bytes as base64, nothing without a payload.
 *
 * Keys contain no white space, so the first space ends the key. JSON has no line breaks.
 */
export function messageLine({ key, payload, position, replayed }: Message<unknown>, format: LineFormat): string {
  const bytes = payload instanceof Uint8Array ? Buffer.from(payload).toString('base64') : undefined
  if (format.json) {
    const content = bytes === undefined ? { payload } : { payloadBase64: bytes }
    return `${JSON.stringify({ key, ...content, ...(position === undefined ? {} : { position }), replayed })}\n`
  }
  // A removal from the state has no payload.
  const content = payload === undefined ? '' : JSON.stringify(payload)
  const text = `${key} ${bytes === undefined ? content : `base64:${bytes}`}`
  return `${format.isTerminal ? printable(text) : text}\n`
}

/** A gap as one line of JSON, between the messages before and after it. */
export function gapLine({ pattern, reason, since }: Gap): string {
  return `${JSON.stringify({ gap: reason, pattern, ...(since === undefined ? {} : { since }) })}\n`
}
