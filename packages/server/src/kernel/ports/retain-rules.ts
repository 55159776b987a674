import { contains, matches } from 'webmq-client/protocol'
import { isReserved } from './reserved-keys.js'

/** Bounds of {@link RetainRules}. */
export interface RetainLimits {
  /** Most keys that have a retained message. */
  readonly maxKeys: number
  /** Most bytes of these keys and their payloads. */
  readonly maxBytes: number
}

/** Keys whose rule is cached; a full cache is cleared. */
const MAX_REMEMBERED_KEYS = 10_000

/** Of which keys the last message is retained. */
export class RetainRules {
  readonly patterns: readonly string[]
  readonly limits: RetainLimits
  readonly #byKey = new Map<string, boolean>()

  constructor(patterns: readonly string[], limits: RetainLimits) {
    this.patterns = patterns
    this.limits = limits
  }

  /** Whether the last message of the key is retained. Cost: one look-up for a cached key. */
  has(key: string): boolean {
    if (this.patterns.length === 0) return false
    const known = this.#byKey.get(key)
    if (known !== undefined) return known
    const isRetained = !isReserved(key) && this.patterns.some((pattern) => matches(pattern, key))
    if (this.#byKey.size >= MAX_REMEMBERED_KEYS) this.#byKey.clear()
    this.#byKey.set(key, isRetained)
    return isRetained
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
