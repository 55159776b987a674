import { claimDefect } from './claim-text.js'
import type { Identity } from './identity.js'

/** Times are Unix time in whole seconds, as in the claims of tokens. */
export type Revocation =
  /** One token, by its `jti`. */
  | { readonly by: 'token'; readonly value: string; readonly until: number }
  /** All tokens of a user, by `sub`, that were issued at or before a time. */
  | { readonly by: 'user'; readonly value: string; readonly until: number; readonly issuedUntil: number }

/** The form of a revocation in messages between nodes. */
type RevocationText =
  | readonly ['t', value: string, until: number]
  | readonly ['u', value: string, until: number, issuedUntil: number]

/** The year 9999: the end of what dates can say. */
export const MAX_UNIX_S = 253_402_300_799

export function revocationText(revocation: Revocation): RevocationText {
  const { by, value, until } = revocation
  return by === 'token' ? ['t', value, until] : ['u', value, until, revocation.issuedUntil]
}

/** Reads the short form; `undefined` when it is malformed. */
export function revocationFrom(text: unknown): Revocation | undefined {
  if (!Array.isArray(text)) return undefined
  const [letter, value, until, issuedUntil] = text as readonly unknown[]
  if (claimDefect(value) !== undefined || !isTime(until)) return undefined
  if (letter === 't') return { by: 'token', value: value as string, until }
  if (letter !== 'u' || !isTime(issuedUntil)) return undefined
  return { by: 'user', value: value as string, until, issuedUntil }
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MAX_UNIX_S
}

/** Most revocations that a node takes from its own callers. */
export const MAX_REVOCATIONS = 100_000
/** Other nodes may take some at the same time, so up to this factor is kept of theirs. */
const OVERSHOOT = 2
/** The largest `clockToleranceS`: so long after its end a token is accepted, or by a node whose clock is behind. */
const TOLERANCE_S = 300
/** What is over is removed at most this often. */
const SWEEP_MS = 1_000

/** A set of revocations in short, to find out whether two nodes hold the same. */
export interface RevocationDigest {
  readonly count: number
  readonly hash: number
}

/** What {@link Revocations.add} did: `over` means that no token can be alive, so there is nothing to keep. */
export type AddedRevocation = 'added' | 'known' | 'over' | 'full'

/** The revoked tokens that may still be alive, bounded in number. Cost of a check: one or two lookups. */
export class Revocations {
  /** By the value of the claim. */
  readonly #kept = { token: new Map<string, Revocation>(), user: new Map<string, Revocation>() }
  readonly #now: () => number
  readonly #max: number
  #sweptAtMs = Number.NEGATIVE_INFINITY
  #digest: RevocationDigest | undefined

  /** @param now Unix time in milliseconds. */
  constructor(now: () => number = Date.now, max: number = MAX_REVOCATIONS) {
    this.#now = now
    this.#max = max
  }

  get size(): number {
    return this.#kept.token.size + this.#kept.user.size
  }

  covers({ userId, tokenId, issuedAtS }: Identity): boolean {
    if (this.size === 0) return false
    const token = tokenId === undefined ? undefined : this.#kept.token.get(tokenId)
    if (token !== undefined && !this.#isOver(token)) return true
    const user = userId === undefined ? undefined : this.#kept.user.get(userId)
    if (user === undefined || this.#isOver(user)) return false
    // A token that does not tell its age counts as old.
    return issuedAtS === undefined || Math.floor(issuedAtS) <= issuedUntilOf(user)
  }

  /**
   * Adds a revocation. Two of the same token or user become one, which covers what both cover.
   * @param isForeign Another node has taken it, so it is kept even a little beyond the limit.
   */
  add(revocation: Revocation, isForeign = false): AddedRevocation {
    const { by, value, until } = revocation
    if (this.#isOver(revocation)) return 'over'
    const kept = this.#kept[by]
    const known = kept.get(value)
    if (known === undefined && this.#isFull(isForeign)) return 'full'
    if (known !== undefined && known.until >= until && issuedUntilOf(known) >= issuedUntilOf(revocation)) return 'known'
    this.#digest = undefined
    kept.set(value, known === undefined ? revocation : coveringBoth(known, revocation))
    return 'added'
  }

  /** All of them, in no particular order; may change during the walk. */
  *[Symbol.iterator](): Iterator<Revocation> {
    for (const kept of Object.values(this.#kept)) yield* kept.values()
  }

  /** Equal for two nodes that hold the same. Cost after a change: O(characters of all revocations), about 10 ms when full. */
  digest(): RevocationDigest {
    this.#sweep()
    if (this.#digest !== undefined) return this.#digest
    let hash = 0
    // A sum, so that the order does not matter.
    for (const revocation of this) hash = (hash + hashOf(revocation)) >>> 0
    this.#digest = { count: this.size, hash }
    return this.#digest
  }

  #isOver({ until }: Revocation): boolean {
    return (until + TOLERANCE_S) * 1_000 <= this.#now()
  }

  #isFull(isForeign: boolean): boolean {
    const max = isForeign ? this.#max * OVERSHOOT : this.#max
    if (this.size >= max) this.#sweep()
    return this.size >= max
  }

  #sweep(): void {
    const nowMs = this.#now()
    if (nowMs - this.#sweptAtMs < SWEEP_MS) return
    this.#sweptAtMs = nowMs
    const countBefore = this.size
    for (const revocation of this) if (this.#isOver(revocation)) this.#kept[revocation.by].delete(revocation.value)
    if (this.size !== countBefore) this.#digest = undefined
  }
}

function issuedUntilOf(revocation: Revocation): number {
  return revocation.by === 'user' ? revocation.issuedUntil : 0
}

function coveringBoth(one: Revocation, other: Revocation): Revocation {
  const until = Math.max(one.until, other.until)
  if (one.by === 'token') return { ...one, until }
  return { ...one, until, issuedUntil: Math.max(issuedUntilOf(one), issuedUntilOf(other)) }
}

/** FNV-1a over the UTF-16 units: enough to notice a difference, and no secret depends on it. */
function hashOf({ by, value, until, ...rest }: Revocation): number {
  const text = `${by} ${until} ${'issuedUntil' in rest ? rest.issuedUntil : ''} ${value}`
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  return hash >>> 0
}
