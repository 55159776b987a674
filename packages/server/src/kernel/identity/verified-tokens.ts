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

interface Generation {
  readonly entries: Map<string, Verified>
  keptBytes: number
}

/**
 * Remembers which tokens were valid, by their SHA-256: a client that comes back brings the same one. Expiry, `nbf` and the
 * version of the keys are looked at each time; issuer and audience are those of the verifier, which has its own memory, and
 * a revocation is the caller's matter, as for every identity. The token itself is not kept.
 *
 * Two generations: once the younger one is full, the older one goes, with all that was not used meanwhile. To take the
 * oldest entry out of one full map takes over 50 µs, because a map walks over what was deleted before it.
 */
export class VerifiedTokens {
  readonly #maxKeptBytes: number
  #younger: Generation = { entries: new Map(), keptBytes: 0 }
  #older: Generation = { entries: new Map(), keptBytes: 0 }

  constructor(maxKeptBytes = MAX_KEPT_BYTES) {
    this.#maxKeptBytes = maxKeptBytes
  }

  get keptBytes(): number {
    return this.#younger.keptBytes + this.#older.keptBytes
  }

  /** The identity of a token that is valid still; the same object as before. */
  get(digest: string, nowMs: number, keysVersion: number): Identity | undefined {
    const young = this.#younger.entries.get(digest)
    const entry = young ?? this.#older.entries.get(digest)
    if (entry === undefined) return undefined
    const { identity, notBeforeMs } = entry
    const isExpired = identity.expiresAtMs !== undefined && nowMs >= identity.expiresAtMs
    if (isExpired || entry.keysVersion !== keysVersion) {
      this.#remove(digest)
      return undefined
    }
    if (young === undefined) this.#put(digest, entry)
    return nowMs < notBeforeMs ? undefined : identity
  }

  /** @param keysVersion That of before the verification began. @param tokenChars Length of the token. */
  set(digest: string, identity: Identity, notBeforeMs: number, keysVersion: number, tokenChars: number): void {
    this.#put(digest, { identity, notBeforeMs, keysVersion, sizeBytes: ENTRY_BYTES + tokenChars * BYTES_PER_CHAR })
  }

  #put(digest: string, entry: Verified): void {
    this.#remove(digest)
    const maxBytes = this.#maxKeptBytes / 2
    if (entry.sizeBytes > maxBytes) return
    if (this.#younger.keptBytes + entry.sizeBytes > maxBytes) {
      this.#older = this.#younger
      this.#younger = { entries: new Map(), keptBytes: 0 }
    }
    this.#younger.entries.set(digest, entry)
    this.#younger.keptBytes += entry.sizeBytes
  }

  #remove(digest: string): void {
    for (const generation of [this.#younger, this.#older]) {
      generation.keptBytes -= generation.entries.get(digest)?.sizeBytes ?? 0
      generation.entries.delete(digest)
    }
  }
}

export function digestOf(token: string): string {
  return hash('sha256', token, 'base64url')
}
