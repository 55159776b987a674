import { WebMQError } from 'webmq-client/protocol'
import type { LimitOverrides } from './limit-overrides.js'

export const ACTIONS = ['listen', 'publish', 'presence'] as const

export type Action = (typeof ACTIONS)[number]

/** Allows actions on every key that one of its patterns matches. Grants only add rights. */
export interface Grant {
  /** Patterns. */
  readonly keys: readonly string[]
  readonly allow: readonly Action[]
}

/** The claims of a verified token (RFC 7519 §4). */
export type Claims = Readonly<Record<string, unknown>>

/** The user of a connection and their grants. Immutable, because compiled grants are cached. */
export interface Identity {
  /** The token's `sub`; absent for anonymous clients and for tokens without a `sub`. */
  readonly userId?: string
  readonly grants: readonly Grant[]
  /** Limits that differ from the options; absent: none does. */
  readonly limits?: LimitOverrides
  /** The token's `jti`, by which it can be revoked; absent when it has none. */
  readonly tokenId?: string
  /** The token's `iat`, Unix time in seconds; absent when it has none. */
  readonly issuedAtS?: number
  /** Expiry of the token, Unix time in milliseconds; absent when it never expires. May exceed the range of a timer. */
  readonly expiresAtMs?: number
  /** Kept only while somebody asks for them, see {@link TokenVerifierOptions}. */
  readonly claims?: Claims
}

/** The identity of every client when the server has no key for tokens: it may do anything. */
export const ANONYMOUS: Identity = { grants: [{ keys: ['#'], allow: ACTIONS }] }

/** The identity of a client that a hook must identify: it may do nothing. */
export const UNIDENTIFIED: Identity = { grants: [] }

export function invalidToken(detail: string, cause?: unknown): WebMQError {
  return new WebMQError('E_TOKEN_INVALID', { detail, cause })
}
