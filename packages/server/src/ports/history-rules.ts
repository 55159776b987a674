import { contains, isPattern, matches } from 'webmq-client/protocol'

/** Which keys are logged, and what of each. */
export interface HistoryRule {
  readonly pattern: string
  /** Of one key, so many of the newest messages are given to who asks for `last`, for a time, or for history. */
  readonly maxMessages: number
  /** Older messages are not given to anybody; `undefined` while the log holds them. */
  readonly maxAgeMs: number | undefined
}

/** Keys that are the server's own begin with this; they are never logged. */
const INTERNAL = '$'
/** Keys whose rule is remembered; then they are forgotten all at once. */
const MAX_REMEMBERED_KEYS = 10_000

/** What is logged: the first rule whose pattern matches a key is the key's. */
export class HistoryRules {
  readonly #rules: readonly HistoryRule[]
  readonly #byKey = new Map<string, HistoryRule | undefined>()
  /** When there is but one rule, and it is for all keys. */
  readonly #all: HistoryRule | undefined
  /** After this time no message is given to anybody; `undefined` when there is a rule without an age. */
  readonly maxAgeMs: number | undefined

  constructor(rules: readonly HistoryRule[]) {
    this.#rules = rules
    const [first] = rules
    this.#all = first?.pattern === '#' ? first : undefined
    const ages = rules.map(({ maxAgeMs }) => maxAgeMs)
    this.maxAgeMs = ages.includes(undefined) ? undefined : Math.max(0, ...ages.filter((age) => age !== undefined))
  }

  /** Without a rule nothing is logged. */
  get isEmpty(): boolean {
    return this.#rules.length === 0
  }

  /** Patterns of the keys that are logged. */
  get patterns(): readonly string[] {
    return this.#rules.map(({ pattern }) => pattern)
  }

  /** Whether some rule is about age, so that each message has to be looked at. */
  get hasAges(): boolean {
    return this.#rules.some(({ maxAgeMs }) => maxAgeMs !== undefined)
  }

  /** The rule of a key; `undefined` when it is not logged. Cost: one look-up for a key that was seen lately. */
  ruleOf(key: string): HistoryRule | undefined {
    if (this.#all !== undefined) return key.startsWith(INTERNAL) ? undefined : this.#all
    if (this.#rules.length === 0) return undefined
    const known = this.#byKey.get(key)
    if (known !== undefined || this.#byKey.has(key)) return known
    const rule = key.startsWith(INTERNAL) ? undefined : this.#rules.find(({ pattern }) => matches(pattern, key))
    if (this.#byKey.size >= MAX_REMEMBERED_KEYS) this.#byKey.clear()
    this.#byKey.set(key, rule)
    return rule
  }

  /** Whether every key that the pattern matches is logged, by one and the same rule. */
  covers(pattern: string): boolean {
    if (pattern.startsWith(INTERNAL)) return false
    return this.#rules.some((rule) => contains(rule.pattern, pattern))
  }
}

/** What {@link parseHistoryRule} takes. */
export const HISTORY_RULE_FORM = 'pattern=messages or pattern=messages,age, as in chat.#=100,10m'

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const MAX_AGE_MS = 365 * 86_400_000

/** Reads `chat.#=100,10m`; `undefined` when it is not {@link HISTORY_RULE_FORM}. */
export function parseHistoryRule(text: string): HistoryRule | undefined {
  const match = /^(.+)=(\d{1,9})(?:,(\d{1,12})(ms|s|m|h|d))?$/.exec(text.trim())
  const [, pattern = '', messages = '', age, unit = 'ms'] = match ?? []
  if (!isPattern(pattern) || Number(messages) === 0) return undefined
  if (age === undefined) return { pattern, maxMessages: Number(messages), maxAgeMs: undefined }
  const maxAgeMs = Number(age) * (UNITS_MS[unit] ?? 1)
  return maxAgeMs > 0 && maxAgeMs <= MAX_AGE_MS ? { pattern, maxMessages: Number(messages), maxAgeMs } : undefined
}

/**
 * The rules of a server. Without any, an embedded broker logs everything: what it keeps costs nothing elsewhere.
 * @param history Texts that {@link parseHistoryRule} can read.
 */
export function historyRulesOf(
  { history, historyMaxMessages }: { readonly history: readonly string[]; readonly historyMaxMessages: number },
  isEmbedded: boolean,
): HistoryRules {
  const rules = history.map(parseHistoryRule).filter((rule) => rule !== undefined)
  if (rules.length > 0 || !isEmbedded) return new HistoryRules(rules)
  return new HistoryRules([{ pattern: '#', maxMessages: historyMaxMessages, maxAgeMs: undefined }])
}

/** What is logged, and the bounds of what a node keeps of it. */
export interface HistoryOptions {
  readonly history: HistoryRules
  /** Messages that a node keeps; 0 keeps none, and there is then no history. */
  readonly historyMaxMessages: number
  /** Bytes of payload that a node keeps; 0 as above. */
  readonly historyMaxBytes: number
}
