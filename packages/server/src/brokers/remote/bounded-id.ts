import { createHash } from 'node:crypto'

/** The envelope has one byte for the length of a message id. */
const MAX_ID_BYTES = 255

/** The id, or its hash if it is longer: ids are only compared, and all nodes use the same hash. */
export function boundedId(messageId: string): string {
  return Buffer.byteLength(messageId) <= MAX_ID_BYTES ? messageId : hashOf(messageId)
}

/** 43 characters of `[A-Za-z0-9_-]`. */
export function hashOf(messageId: string): string {
  return createHash('sha256').update(messageId).digest('base64url')
}
