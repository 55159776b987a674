import { randomFillSync } from 'node:crypto'

/** 96 bits cannot be guessed, and never repeat. */
const ID_BYTES = 12
const IDS_PER_FILL = 256

const random = Buffer.allocUnsafeSlow(ID_BYTES * IDS_PER_FILL)
let usedBytes = random.length

/** Names a session in logs: 16 letters of base64url. Every session keeps its id, and a UUID takes three times the memory. */
export function createSessionId(): string {
  if (usedBytes === random.length) {
    randomFillSync(random)
    usedBytes = 0
  }
  usedBytes += ID_BYTES
  return random.toString('base64url', usedBytes - ID_BYTES, usedBytes)
}
