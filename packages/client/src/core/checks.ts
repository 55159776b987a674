import { type ERRORS, WebMQError } from '../protocol/errors.js'
import { isKey, isPattern } from '../protocol/keys.js'
import type { ClientOptions } from './client-options.js'

/**
 * What finds and explains mistakes of an app. The builds for development and for Node have it, see `development.ts`. A
 * page for production goes without: its errors have their code and the link to the docs.
 */
export interface Checks {
  /** The sentences of all errors. */
  readonly errors: typeof ERRORS
  /** @throws {WebMQError} `E_OPTION_INVALID`, naming the option. */
  options(options: ClientOptions): void
  /**
   * @param range The options of a listen, or some of a history read.
   * @throws {WebMQError} `E_OPTION_INVALID`, `E_POSITION_INVALID`, naming the option.
   */
  range(range: RangeOptions): void
  /** Of a part, by the name of its function. @throws {WebMQError} `E_OPTION_INVALID`, naming the option. */
  part(name: string, options: object): void
  /** @throws {WebMQError} `E_OPTION_INVALID` for a name that no event has. */
  event(name: string): void
  /** @throws {WebMQError} `E_OPTION_INVALID` for what cannot handle messages. */
  receiver(receiving: unknown): void
  /** @throws {WebMQError} `E_OPTION_INVALID`, naming the option. */
  publish(options: object, id: string, timeoutMs: number): void
  /** `JSON.stringify`. @throws {WebMQError} `E_PAYLOAD_INVALID`, naming the part that has no JSON form. */
  encodeJson(payload: unknown): string
  /** Warns of words that an app did not mean. @throws {WebMQError} `E_KEY_INVALID`, naming the problem and the place. */
  key(key: string): void
  /** Warns of words that an app did not mean. @throws {WebMQError} `E_PATTERN_INVALID`, naming the problem and the place. */
  pattern(pattern: string): void
  /** Why the app's value cannot be a token. */
  token(token: unknown): string
  /** Why there is no room for one more publish. @param waiting The publishes that wait, oldest first. */
  full(limit: string, waiting: Iterable<{ readonly createdAtMs: number }>): string
}

/** Options of a listen or a history read that say where it starts. */
export interface RangeOptions {
  readonly since?: string | undefined
  readonly last?: number | undefined
  readonly rewind?: number | string | undefined
}

/** The checks of this build. */
export let checks: Partial<Checks> = {}

/** Sets the checks of all clients. */
export function setChecks(all: Partial<Checks>): void {
  checks = all
}

/** @throws {WebMQError} `E_KEY_INVALID` */
export function checkKey(key: string): void {
  if (checks.key) checks.key(key)
  else if (!isKey(key)) throw new WebMQError('E_KEY_INVALID', { detail: key })
}

/** @throws {WebMQError} `E_PATTERN_INVALID` */
export function checkPattern(pattern: string): void {
  if (checks.pattern) checks.pattern(pattern)
  else if (!isPattern(pattern)) throw new WebMQError('E_PATTERN_INVALID', { detail: pattern })
}

/**
 * Encodes a value as JSON.
 * @throws {WebMQError} `E_PAYLOAD_INVALID` for what JSON cannot say. Without {@link checks} for what `JSON.stringify` refuses
 * alone: a `Map` is then `{}`, and `NaN` is `null`.
 */
export function encodeJson(value: unknown): string {
  let cause: unknown
  try {
    const json: string | undefined = (checks.encodeJson ?? JSON.stringify)(value)
    if (json !== undefined) return json
  } catch (error) {
    if (error instanceof WebMQError) throw error
    cause = error
  }
  throw new WebMQError('E_PAYLOAD_INVALID', { cause })
}
