/** What a grant may allow. */
export const ACTIONS = ['listen', 'publish'] as const

/** One of {@link ACTIONS}. */
export type Action = (typeof ACTIONS)[number]

/** Allows actions on every key that one of its patterns matches. Grants add up; none takes away. */
export interface Grant {
  /** Patterns. */
  readonly keys: readonly string[]
  readonly allow: readonly Action[]
}

/** Who speaks on a connection, and what they may do. Immutable: what was compiled from its grants is kept. */
export interface Identity {
  /** The token's `sub`. Absent: anonymous, or a token that names nobody. */
  readonly userId?: string
  readonly grants: readonly Grant[]
  /** Unix time in milliseconds when the token runs out; absent when it does not. May be farther away than a timer reaches. */
  readonly expiresAtMs?: number
}

/** Everyone, when the server has no key to verify tokens with: may do anything. */
export const ANONYMOUS: Identity = { grants: [{ keys: ['#'], allow: ACTIONS }] }
