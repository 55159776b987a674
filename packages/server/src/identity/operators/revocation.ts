import { claimDefect } from '../claim-text.js'

/** Times are Unix time in whole seconds, as in the claims of tokens. */
export type Revocation =
  /** One token, by its `jti`. */
  | { readonly by: 'token'; readonly value: string; readonly until: number }
  /** All tokens of a user, by `sub`, that were issued at or before a time. */
  | { readonly by: 'user'; readonly value: string; readonly until: number; readonly issuedUntil: number }

/** The form of a revocation in messages between nodes. */
export type RevocationText =
  | readonly ['t', value: string, until: number]
  | readonly ['u', value: string, until: number, issuedUntil: number]

/** The year 9999: the end of what dates can say. */
export const MAX_UNIX_S = 253_402_300_799

/** The short form of a revocation. */
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
