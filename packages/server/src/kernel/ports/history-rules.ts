import { createHash } from 'node:crypto'
import { contains, isPattern, matches } from 'webmq-client/protocol'
import { isReserved } from './reserved-keys.js'
import type { RetainRules } from './retain-rules.js'

/** Which keys are logged, and what of each. */
export interface HistoryRule {
  readonly pattern: string
  /** Newest messages of one key that a read by number, by time or of history returns at most. */
  readonly maxMessages: number
  /** Older messages are never returned; `undefined`: all that the log holds are. */
  readonly maxAgeMs: number | undefined
}

/** Keys whose rule is cached; a full cache is cleared. */
const MAX_REMEMBERED_KEYS = 10_000

/** What is logged: the first rule whose pattern matches a key is the key's. */
export class HistoryRules {
  readonly #rules: readonly HistoryRule[]
  readonly #byKey = new Map<string, HistoryRule | undefined>()
  /** The first rule, if it is for all keys. */
  readonly #all: HistoryRule | undefined
  /** The longest age of all rules: no older message is returned. `undefined` when some rule has no age. */
  readonly maxAgeMs: number | undefined
  /** The longest age of the rules that have one; 0: none has. */
  readonly longestAgeMs: number
  /** The largest number of a rule. */
  readonly mostMessages: number

  constructor(rules: readonly HistoryRule[]) {
    this.#rules = rules
    const [first] = rules
    this.#all = first?.pattern === '#' ? first : undefined
    const ages = rules.map(({ maxAgeMs }) => maxAgeMs)
    this.longestAgeMs = Math.max(0, ...ages.filter((age) => age !== undefined))
    this.maxAgeMs = ages.includes(undefined) ? undefined : this.longestAgeMs
    this.mostMessages = Math.max(0, ...rules.map(({ maxMessages }) => maxMessages))
  }

  /** Without a rule nothing is logged. */
  get isEmpty(): boolean {
    return this.#rules.length === 0
  }

  /** Patterns of the keys that are logged. */
  get patterns(): readonly string[] {
    return this.#rules.map(({ pattern }) => pattern)
  }

  /** A hash of the keys that are logged, whatever the bounds of their rules. It reveals no key. */
  get fingerprint(): string {
    return fingerprintOf([...new Set(this.patterns)].sort())
  }

  /** Whether some rule has an age, so that a read must check each message. */
  get hasAges(): boolean {
    return this.#rules.some(({ maxAgeMs }) => maxAgeMs !== undefined)
  }

  /** The rule of a key; `undefined` when the key is not logged. Cost: one look-up for a cached key. */
  ruleOf(key: string): HistoryRule | undefined {
    if (this.#all !== undefined) return isReserved(key) ? undefined : this.#all
    if (this.#rules.length === 0) return undefined
    const known = this.#byKey.get(key)
    if (known !== undefined || this.#byKey.has(key)) return known
    const rule = isReserved(key) ? undefined : this.#rules.find(({ pattern }) => matches(pattern, key))
    if (this.#byKey.size >= MAX_REMEMBERED_KEYS) this.#byKey.clear()
    this.#byKey.set(key, rule)
    return rule
  }

  /** Whether one rule logs every key that the pattern matches. */
  covers(pattern: string): boolean {
    if (isReserved(pattern)) return false
    return this.#rules.some((rule) => contains(rule.pattern, pattern))
  }
}

const FINGERPRINT_CHARS = 12

/** A hash of values. */
export function fingerprintOf(value: object): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, FINGERPRINT_CHARS)
}

/** What {@link parseHistoryRule} takes. */
const HISTORY_RULE_FORM = 'pattern=messages or pattern=messages,age, as in chat.#=100,10m'

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const MAX_AGE_MS = 365 * 86_400_000

const MAX_MESSAGES = 999_999_999

/** What a text is to be that {@link parseHistoryRule} does not read; `undefined`: it reads it. */
export function historyRuleDefect(text: string): string | undefined {
  if (parseHistoryRule(text) !== undefined) return undefined
  const [, pattern = '', messages, age] = /^(.+)=(\d+)(?:,(\d+)(?:ms|s|m|h|d))?$/.exec(text.trim()) ?? []
  if (messages === undefined || !isPattern(pattern)) return HISTORY_RULE_FORM
  if (Number(messages) === 0 || Number(messages) > MAX_MESSAGES) return `a rule of 1 to ${MAX_MESSAGES} messages`
  return age === undefined ? HISTORY_RULE_FORM : 'a rule with an age of 1ms to 365d'
}

/** Reads `chat.#=100,10m`; `undefined` when it is not {@link HISTORY_RULE_FORM}. */
export function parseHistoryRule(text: string): HistoryRule | undefined {
  const match = /^(.+)=(\d{1,9})(?:,(\d{1,12})(ms|s|m|h|d))?$/.exec(text.trim())
  const [, pattern = '', messages = '', age, unit = 'ms'] = match ?? []
  if (!isPattern(pattern) || Number(messages) === 0) return undefined
  if (age === undefined) return { pattern, maxMessages: Number(messages), maxAgeMs: undefined }
  const maxAgeMs = Number(age) * (UNITS_MS[unit] ?? 1)
  return maxAgeMs > 0 && maxAgeMs <= MAX_AGE_MS ? { pattern, maxMessages: Number(messages), maxAgeMs } : undefined
}

/** Options of the server that make {@link HistoryRules}. */
export interface HistoryRuleOptions {
  /** Texts that {@link parseHistoryRule} can read. */
  readonly history: readonly string[]
  readonly historyMaxMessages: number
  /** Patterns of retained keys: they are logged even without a rule. Default: none. */
  readonly retain?: readonly string[]
}

/** The rules of a server. Without any, an embedded broker logs everything: its log costs nothing on other machines. */
export function historyRulesOf(
  { history, historyMaxMessages: maxMessages, retain = [] }: HistoryRuleOptions,
  isEmbedded: boolean,
): HistoryRules {
  const rules = history.map(parseHistoryRule).filter((rule) => rule !== undefined)
  const patterns = rules.length === 0 && isEmbedded ? ['#'] : retain
  const others = patterns.map((pattern) => ({ pattern, maxMessages, maxAgeMs: undefined }))
  return new HistoryRules([...rules, ...others])
}

/** What is logged, and how much of it a node keeps. */
export interface HistoryOptions {
  readonly history: HistoryRules
  /** Messages that a node keeps; 0 keeps none, and there is then no history. */
  readonly historyMaxMessages: number
  /** Bytes of payload that a node keeps; 0 as above. */
  readonly historyMaxBytes: number
  /** Keys whose last message outlives these bounds; absent: none. */
  readonly retain?: RetainRules | undefined
}
