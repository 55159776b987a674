import { encodeJson, isKey, WebMQError } from 'webmq-client/protocol'
import { HookRefusal } from '../../kernel/base/hook-refusal.js'
import { isObject } from '../../kernel/base/is-object.js'
import { JsonText } from '../../kernel/base/json-text.js'
import { reasonOf } from '../../kernel/base/reason.js'
import { claimDefect, type Grant, type Identity, parseGrants } from '../../kernel/identity/index.js'
import type { WordLimits } from '../../kernel/ports/word-limits.js'

const MAX_MESSAGE_CHARS = 200
const DEFAULT_REFUSAL = { code: 'E_FORBIDDEN', message: 'refused' } as const
/** As long as a timer of Node may be told to wait, and much longer than a connection lives. */
const MAX_EXPIRY_MS = 10 * 365 * 86_400_000

/** An answer that a hook must not give: a bug of the application, or of a webhook. */
export class NonsenseError extends Error {
  override readonly name = 'NonsenseError'
}

/**
 * The members of an answer; `undefined` when the hook says nothing.
 * @param names Members that it may have beside `refuse`.
 * @throws {HookRefusal} when the answer refuses; {@link NonsenseError}.
 */
export function readAnswer<Name extends string>(
  answer: unknown,
  names: readonly Name[],
): { readonly [N in Name]?: unknown } | undefined {
  if (answer === undefined || answer === null) return undefined
  const members = asObject(answer, 'the answer')
  if (members.refuse !== undefined) throw refusalIn(members.refuse)
  for (const name in members) {
    if (name !== 'refuse' && !names.some((known) => known === name)) {
      throw new NonsenseError(`the answer has an unknown member ${name.slice(0, 40)}; known: ${describe(names)}`)
    }
  }
  return members as { readonly [N in Name]?: unknown }
}

function describe(names: readonly string[]): string {
  return ['refuse', ...names].join(', ')
}

function refusalIn(value: unknown): HookRefusal {
  const { code = DEFAULT_REFUSAL.code, message = DEFAULT_REFUSAL.message } = asObject(value, 'refuse')
  if (typeof code !== 'string' || !/^E_[A-Z0-9_]{1,40}$/.test(code)) {
    throw new NonsenseError('refuse.code is not E_ and 1 to 40 characters of [A-Z0-9_]')
  }
  if (typeof message !== 'string' || message.length > MAX_MESSAGE_CHARS) {
    throw new NonsenseError(`refuse.message is not a text of at most ${MAX_MESSAGE_CHARS} characters`)
  }
  return new HookRefusal(code, message)
}

function asObject(value: unknown, where: string): Record<string, unknown> {
  if (isObject(value)) return value
  throw new NonsenseError(`${where} is not an object`)
}

/** The identity that an answer gives. @param identity The one that the client has without it. */
export function identityIn(
  { user, grants, expiresInMs }: { readonly user?: unknown; readonly grants?: unknown; readonly expiresInMs?: unknown },
  identity: Identity,
  nowMs: number,
  limits: WordLimits,
): Identity {
  const defect = user === undefined ? undefined : claimDefect(user)
  if (defect !== undefined) throw new NonsenseError(`user ${defect}`)
  const changed: { -readonly [Name in keyof Identity]: Identity[Name] } = { ...identity }
  if (user !== undefined) changed.userId = user as string
  if (grants !== undefined) changed.grants = grantsIn(grants, limits)
  if (expiresInMs !== undefined) {
    if (typeof expiresInMs !== 'number' || !(expiresInMs > 0) || expiresInMs > MAX_EXPIRY_MS) {
      throw new NonsenseError('expiresInMs is not a time in milliseconds')
    }
    changed.expiresAtMs = Math.min(nowMs + expiresInMs, identity.expiresAtMs ?? Number.POSITIVE_INFINITY)
  }
  return changed
}

function grantsIn(grants: unknown, limits: WordLimits): readonly Grant[] {
  try {
    return parseGrants({ grants }, limits)
  } catch (cause) {
    throw new NonsenseError(reasonOf(cause), { cause })
  }
}

export function keyIn(key: unknown): string {
  if (typeof key === 'string' && isKey(key)) return key
  throw new NonsenseError('key is not a valid key')
}

export interface EncodedPayload {
  readonly payload: Uint8Array
  readonly isBinary: boolean
}

/** The payload that an answer gives: bytes as they are, any other value as JSON. */
export function payloadIn(payload: unknown): EncodedPayload {
  if (payload instanceof Uint8Array) return { payload: new Uint8Array(payload), isBinary: true }
  return { payload: Buffer.from(jsonIn(payload, 'payload')), isBinary: false }
}

export function jsonIn(value: unknown, name: string): string {
  if (value instanceof JsonText) return value.text
  try {
    return encodeJson(value)
  } catch (cause) {
    if (cause instanceof WebMQError) throw new NonsenseError(`${name}: ${cause.message}`, { cause })
    throw cause
  }
}
