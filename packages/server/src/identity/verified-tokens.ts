import { hash } from 'node:crypto'
import type { Identity } from './identity.js'

/** About the memory that identities of verified tokens may take. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024
/** An entry beside what was in its token. */
const ENTRY_BYTES = 600
/** A character of a token becomes at most so much of an identity: texts of two bytes, claims and grants. */
const BYTES_PER_CHAR = 4

interface Verified {
  readonly identity: Identity
  /** From this time on, Unix time in milliseconds (`nbf`). */
  readonly notBeforeMs: number
  readonly keysVersion: number
  readonly sizeBytes: number
}

/**
 * Remembers which tokens were valid, by their SHA-256: a client that comes back brings the same one. Expiry, `nbf` and the
 * version of the keys are looked at each time; issuer and audience are those of the verifier, which has its own memory, and
 * a revocation is the caller's matter, as for every identity. The token itself is not kept.
 */
export class VerifiedTokens {
  /** In the order of their last use. */
  readonly #entries = new Map<string, Verified>()
  readonly #maxKeptBytes: number
  #keptBytes = 0

  constructor(maxKeptBytes = MAX_KEPT_BYTES) {
    this.#maxKeptBytes = maxKeptBytes
  }

  /** Bytes by its own count. */
  get keptBytes(): number {
    return this.#keptBytes
  }

  /** The identity of a token that is valid still; the same object as before. */
  get(digest: string, nowMs: number, keysVersion: number): Identity | undefined {
    const entry = this.#entries.get(digest)
    if (entry === undefined) return undefined
    this.#remove(digest, entry)
    const { identity, notBeforeMs } = entry
    const isExpired = identity.expiresAtMs !== undefined && nowMs >= identity.expiresAtMs
    if (isExpired || entry.keysVersion !== keysVersion) return undefined
    this.#add(digest, entry)
    return nowMs < notBeforeMs ? undefined : identity
  }

  /**
   * @param keysVersion That of before the verification began.
   * @param tokenChars Length of the token.
   */
  set(digest: string, identity: Identity, notBeforeMs: number, keysVersion: number, tokenChars: number): void {
    const known = this.#entries.get(digest)
    if (known !== undefined) this.#remove(digest, known)
    this.#add(digest, { identity, notBeforeMs, keysVersion, sizeBytes: ENTRY_BYTES + tokenChars * BYTES_PER_CHAR })
    for (const [oldest, entry] of this.#entries) {
      if (this.#keptBytes <= this.#maxKeptBytes) break
      this.#remove(oldest, entry)
    }
  }

  #add(digest: string, entry: Verified): void {
    this.#entries.set(digest, entry)
    this.#keptBytes += entry.sizeBytes
  }

  #remove(digest: string, entry: Verified): void {
    this.#entries.delete(digest)
    this.#keptBytes -= entry.sizeBytes
  }
}

/** The SHA-256 of a token, as a text. */
export function digestOf(token: string): string {
  return hash('sha256', token, 'base64url')
}
