import { isKey } from 'webmq-client/protocol'
import type { RefusalReason, RefusedMessage } from './broker.js'

type Defect = Exclude<RefusalReason, 'failed'>

/** Keys whose form is known; a full set is cleared. */
const MAX_VALID_KEYS = 8_192
const validKeys = new Set<string>()
let lastValidKey = ''

/**
 * Why a message that a broker has brought must not reach clients; `undefined` when it may. Other programs and nodes with
 * other options write to a broker too: a key with a line break would end the header of a frame, and a payload above the
 * limit would close every listener as a slow consumer.
 * Cost: one lookup for a key that was seen lately.
 */
export function inboundDefect(key: string, payload: Uint8Array, maxPayloadBytes: number): Defect | undefined {
  if (!hasKeyForm(key)) return 'malformed'
  return payload.length > maxPayloadBytes ? 'too-large' : undefined
}

export function refusedMessage(
  reason: Defect,
  key: string,
  payload: Uint8Array,
  maxPayloadBytes: number,
): RefusedMessage {
  return reason === 'too-large'
    ? { reason, pattern: key, detail: `${payload.length} bytes, at most ${maxPayloadBytes}` }
    : { reason, pattern: undefined, detail: `no valid key: ${key}` }
}

function hasKeyForm(key: string): boolean {
  if (key === lastValidKey || validKeys.has(key)) {
    lastValidKey = key
    return true
  }
  if (!isKey(key)) return false
  if (validKeys.size >= MAX_VALID_KEYS) validKeys.clear()
  validKeys.add(key)
  return true
}
