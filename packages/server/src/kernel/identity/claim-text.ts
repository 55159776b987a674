/** The user of a token is kept for each connection, and shown to other members of its presence. */
const MAX_CLAIM_BYTES = 255
/** Control characters break lines of logs and headers; a lone surrogate has no UTF-8, so two of them would be one user. */
const FORBIDDEN = /[\p{Cc}\p{Surrogate}]/u

/**
 * Why a claim cannot be kept or shown; `undefined` when it can. Bytes are those of UTF-8.
 * Cost: O(length), of at most a token.
 */
export function claimDefect(claim: unknown): string | undefined {
  if (typeof claim !== 'string' || claim === '') return 'is not a text'
  // A UTF-16 unit takes one to three bytes: most texts need no count.
  const byteCount = claim.length * 3 <= MAX_CLAIM_BYTES ? 0 : Buffer.byteLength(claim)
  if (byteCount > MAX_CLAIM_BYTES) return `has ${byteCount} bytes, at most ${MAX_CLAIM_BYTES} are allowed`
  return FORBIDDEN.test(claim) ? 'contains a control character or half a surrogate pair' : undefined
}
