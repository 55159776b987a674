import { contains } from 'webmq-client/protocol'
import { KeyRules } from './key-rules.js'
import { isReserved } from './reserved-keys.js'

/** Bounds of {@link RetainRules}. */
export interface RetainLimits {
  /** Most keys that have a retained message. */
  readonly maxKeys: number
  /** Most bytes of these keys and their payloads. */
  readonly maxBytes: number
}

/** Of which keys the last message is retained. */
export class RetainRules {
  readonly patterns: readonly string[]
  readonly limits: RetainLimits
  readonly #keys: KeyRules

  constructor(patterns: readonly string[], limits: RetainLimits) {
    this.patterns = patterns
    this.limits = limits
    this.#keys = new KeyRules(patterns)
  }

  /** Whether the last message of the key is retained. Cost: one look-up for a cached key. */
  has(key: string): boolean {
    return !isReserved(key) && this.#keys.covers(key)
  }

  /** Whether one rule retains every key that the pattern matches. */
  covers(pattern: string): boolean {
    if (isReserved(pattern)) return false
    return this.patterns.some((rule) => contains(rule, pattern))
  }
}

/** Options of the server that make {@link RetainRules}. */
export interface RetainOptions {
  readonly retain: readonly string[]
  readonly retainMaxKeys: number
  readonly retainMaxBytes: number
}

/** The rules of a server. */
export function retainRulesOf({ retain, retainMaxKeys, retainMaxBytes }: RetainOptions): RetainRules {
  return new RetainRules(retain, { maxKeys: retainMaxKeys, maxBytes: retainMaxBytes })
}
