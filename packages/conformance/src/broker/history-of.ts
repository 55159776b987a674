import type { HistoryOptions } from 'webmq-server/ports'
import { HistoryRules, parseHistoryRule, RetainRules } from 'webmq-server/ports'

/**
 * Options of a broker with these rules (`chat.#=100,10m`) that keeps 10,000 messages of 16 MiB. Without rules it logs
 * nothing.
 */
export function historyOf(...rules: readonly string[]): HistoryOptions {
  const parsed = rules.map((text) => {
    const rule = parseHistoryRule(text)
    if (rule === undefined) throw new TypeError(`no rule: ${text}`)
    return rule
  })
  return { history: new HistoryRules(parsed), historyMaxMessages: 10_000, historyMaxBytes: 16 * 1_048_576 }
}

/** The same options, and the last message of these keys is retained: of 1,000 keys and 1 MiB at most. */
export function retaining(history: HistoryOptions, ...patterns: readonly string[]): HistoryOptions {
  return { ...history, retain: new RetainRules(patterns, { maxKeys: 1_000, maxBytes: 1_048_576 }) }
}
