import { createHash, randomBytes } from 'node:crypto'

/**
 * Every message carries its epoch, so it is short: 36 bits. A client that returns with a position of an earlier log
 * takes the present log for that one with a chance of one in 6.9e10. Only epochs of one log that one client holds are
 * compared, so the number of logs and clients does not add to that.
 */
const EPOCH_CHARS = 6
const EPOCH_BYTES = Math.ceil((EPOCH_CHARS * 6) / 8)

/** Returns a new epoch: 6 random characters of `[A-Za-z0-9_-]`. */
export function newEpoch(): string {
  return randomBytes(EPOCH_BYTES).toString('base64url').slice(0, EPOCH_CHARS)
}

/** Returns the same 6 characters for the same text, so that all nodes find the same epoch. */
export function epochOfText(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, EPOCH_CHARS)
}
