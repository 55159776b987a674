import { contains, type ErrorCode, matches, refusalOf, validatePattern, WebMQError } from 'webmq-client/protocol'
import { isObject } from '../base/is-object.js'
import { reasonOf } from '../base/reason.js'
import { isReserved } from '../ports/reserved-keys.js'
import { patternWordsDefect, type WordLimits } from '../ports/word-limits.js'
import type { Actor } from './actor.js'
import { ACTIONS, type Action, ANONYMOUS, type Grant, type Identity, invalidToken } from './identity.js'

// The grants of every door. Keys that begin with $ belong to the servers: nobody else publishes, listens or is present there.

type Asker = Pick<Actor, 'door' | 'identity'>

/** Whether an actor may listen to a pattern. Whoever may listen to a key may read its history and see who is there. */
export function isListener({ identity }: Pick<Actor, 'identity'>, pattern: string): boolean {
  return identity !== undefined && !isReserved(pattern) && mayListen(identity, pattern)
}

export function isMember({ identity }: Pick<Actor, 'identity'>, key: string): boolean {
  return identity !== undefined && !isReserved(key) && mayEnter(identity, key)
}

export function isPublisher({ identity }: Pick<Actor, 'identity'>, key: string): boolean {
  return identity !== undefined && !isReserved(key) && mayPublish(identity, key)
}

/** @throws {WebMQError} `E_FORBIDDEN`; `E_KEY_INVALID` for a key of the servers, without a session. */
export function assertMayListen(actor: Asker, pattern: string): void {
  if (!isListener(actor, pattern)) throw refusal(actor, 'listen', pattern)
}

export function assertMayEnter(actor: Asker, key: string): void {
  if (!isMember(actor, key)) throw refusal(actor, 'presence', key)
}

export function assertMayPublish(actor: Asker, key: string): void {
  if (!isPublisher(actor, key)) throw refusal(actor, 'publish', key)
}

function refusal({ door }: Asker, action: string, subject: string): WebMQError {
  const hasSession = door === 'websocket' || door === 'sse'
  if (hasSession || !isReserved(subject)) return refusalOf('E_FORBIDDEN', { detail: `${action} ${subject}` })
  const code: ErrorCode = 'E_KEY_INVALID'
  const detail = 'keys that begin with $ are reserved for servers'
  // A program wants to know which of its lines was wrong.
  return door === 'process' ? new WebMQError(code, { detail }) : refusalOf(code, { detail })
}

/** The defaults of the options. */
const DEFAULT_WORD_LIMITS: WordLimits = { maxWords: 32, maxHashes: 3 }
/** More patterns in one token would make every check of that connection expensive. */
const MAX_GRANTED_PATTERNS = 1000
/** Cached answers per identity; publishers use few keys again and again. */
const MAX_CACHED_KEYS = 256
/** Of all identities, which outlive their connections. Each takes up to 400 bytes. */
const MAX_CACHED_ANSWERS = 65_536

interface CompiledGrants {
  readonly publish: readonly string[]
  readonly publishesEverything: boolean
  readonly publishAnswers: Map<string, boolean>
}

let compiledGrants = new WeakMap<Identity, CompiledGrants>()
/** Cached answers: those of identities that are gone count until all are forgotten. */
let answerCount = 0

/**
 * Whether an identity may listen to a pattern. One granted pattern must contain every key that the pattern matches; an
 * overlap is not enough.
 *
 * @param pattern A valid pattern.
 */
export function mayListen(identity: Identity, pattern: string): boolean {
  if (identity === ANONYMOUS) return true
  return identity.grants.some(
    ({ allow, keys }) => allow.includes('listen') && keys.some((granted) => contains(granted, pattern)),
  )
}

/**
 * Whether an identity may publish to a key. Answers are cached per identity, so a repeated check costs one lookup.
 *
 * @param key A valid key.
 */
export function mayPublish(identity: Identity, key: string): boolean {
  if (identity === ANONYMOUS) return true
  const { publish, publishesEverything, publishAnswers } = compile(identity)
  if (publishesEverything) return true
  const known = publishAnswers.get(key)
  if (known !== undefined) return known
  const answer = publish.some((granted) => matches(granted, key))
  remember(publishAnswers, key, answer)
  return answer
}

function remember(answers: Map<string, boolean>, key: string, answer: boolean): void {
  if (answerCount >= MAX_CACHED_ANSWERS) {
    compiledGrants = new WeakMap()
    answerCount = 0
    return
  }
  if (answers.size >= MAX_CACHED_KEYS) {
    answerCount -= answers.size
    answers.clear()
  }
  answers.set(key, answer)
  answerCount++
}

/**
 * Whether an identity may be present at a key, which shows it to everybody who may listen there.
 *
 * @param key A valid key.
 */
export function mayEnter(identity: Identity, key: string): boolean {
  if (identity === ANONYMOUS) return true
  return identity.grants.some(
    ({ allow, keys }) => allow.includes('presence') && keys.some((granted) => matches(granted, key)),
  )
}

function compile(identity: Identity): CompiledGrants {
  const known = compiledGrants.get(identity)
  if (known !== undefined) return known
  const publish = patternsFor(identity, 'publish')
  const compiled = { publish, publishesEverything: publish.includes('#'), publishAnswers: new Map() }
  compiledGrants.set(identity, compiled)
  return compiled
}

function patternsFor(identity: Identity, action: Action): readonly string[] {
  return identity.grants.flatMap(({ allow, keys }) => (allow.includes(action) ? keys : []))
}

export interface AccessExplanation {
  readonly isAllowed: boolean
  /** The granted pattern that allows it. */
  readonly grantedBy?: string
  /** One sentence. */
  readonly reason: string
}

/**
 * Explains the answers of {@link mayListen}, {@link mayPublish} and {@link mayEnter}.
 *
 * @param subject A valid pattern to listen to, or a valid key to publish to or to be present at.
 */
export function explainAccess(identity: Identity, action: Action, subject: string): AccessExplanation {
  const covers = action === 'listen' ? contains : matches
  const grantedBy = patternsFor(identity, action).find((granted) => covers(granted, subject))
  if (grantedBy !== undefined)
    return { isAllowed: true, grantedBy, reason: `the grant ${action} ${grantedBy} covers it` }
  const patterns = patternsFor(identity, action)
  if (patterns.length === 0) return { isAllowed: false, reason: `no grant allows ${action} at all` }
  const other = identity.grants.flatMap(({ keys }) => keys).find((granted) => covers(granted, subject))
  const hint = other === undefined ? '' : `; ${other} covers it, but does not allow ${action}`
  const rule = action === 'listen' ? 'contains every key of that pattern' : 'matches that key'
  return { isAllowed: false, reason: `none of ${patterns.join(', ')} ${rule}${hint}` }
}

/**
 * Reads the claim `webmq` of a token: `{ grants: [{ keys: ['chat.*.#'], allow: ['listen', 'publish'] }] }`.
 * Without the claim, nothing is granted. Unknown members are ignored, because later versions may define them.
 *
 * @throws {WebMQError} `E_TOKEN_INVALID` with the malformed part; a claim is never accepted in part.
 */
export function parseGrants(claim: unknown, limits: WordLimits = DEFAULT_WORD_LIMITS): readonly Grant[] {
  if (claim === undefined) return []
  const { grants } = asObject(claim, 'webmq')
  if (grants === undefined) return []
  const parsed = asArray(grants, 'webmq.grants').map((grant, index) =>
    parseGrant(grant, `webmq.grants[${index}]`, limits),
  )
  const patternCount = parsed.reduce((count, grant) => count + grant.keys.length, 0)
  if (patternCount > MAX_GRANTED_PATTERNS) {
    throw invalidToken(`webmq.grants contains ${patternCount} patterns, more than ${MAX_GRANTED_PATTERNS}`)
  }
  return parsed
}

function parseGrant(value: unknown, where: string, limits: WordLimits): Grant {
  const { keys, allow } = asObject(value, where)
  return {
    keys: asArray(keys, `${where}.keys`).map((key, index) => parsePattern(key, `${where}.keys[${index}]`, limits)),
    allow: asArray(allow, `${where}.allow`).map((action, index) => parseAction(action, `${where}.allow[${index}]`)),
  }
}

function parsePattern(value: unknown, where: string, limits: WordLimits): string {
  if (typeof value !== 'string') throw invalidToken(`${where} is not a text`)
  try {
    validatePattern(value)
  } catch (cause) {
    throw invalidToken(`${where}: ${reasonOf(cause)}`, cause)
  }
  const defect = patternWordsDefect(value, limits)
  if (defect !== undefined) throw invalidToken(`${where}: ${defect}`)
  return value
}

function parseAction(value: unknown, where: string): Action {
  const action = ACTIONS.find((name) => name === value)
  if (action === undefined) throw invalidToken(`${where} is not one of ${ACTIONS.join(', ')}`)
  return action
}

function asObject(value: unknown, where: string): Record<string, unknown> {
  if (!isObject(value)) throw invalidToken(`${where} is not an object`)
  return value
}

function asArray(value: unknown, where: string): readonly unknown[] {
  if (!Array.isArray(value)) throw invalidToken(`${where} is not a list`)
  return value
}
