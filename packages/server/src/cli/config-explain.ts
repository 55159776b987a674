import { isKey, matches } from 'webmq-client/protocol'
import { invalidOption } from '../base/invalid-option.js'
import { resolveOptions } from '../options/options.js'
import { historyRulesOf, parseHistoryRule } from '../ports/history-rules.js'
import { parseOverflowRule } from '../ports/overflow-rules.js'
import { isReserved } from '../ports/reserved-keys.js'
import { sourceOf } from './config-check.js'
import type { NamedSource } from './option-flags.js'
import { mergeSources } from './option-sources.js'
import { printable, type Terminal } from './terminal.js'

/**
 * Prints which rules hold for a key, and where each comes from. Of each option the first rule that fits holds.
 * @throws {WebMQError} `E_OPTION_INVALID`.
 */
export function configExplain(key: string, sources: readonly NamedSource[], isJson: boolean, terminal: Terminal): void {
  if (!isKey(key) || isReserved(key)) throw invalidOption(`${key}: not a key of messages, such as chat.42.message`)
  const options = resolveOptions(mergeSources(sources.map(({ values }) => values)))
  const { history, retain, meta, overflow } = options
  const logged = historyRulesOf(options, options.broker === 'memory').ruleOf(key)
  const unlisted = logged === undefined ? 'not logged' : `logged, as ${logged.pattern}=${logged.maxMessages}`
  const first = (rules: readonly string[], patternOf: (rule: string) => string | undefined = (rule) => rule) =>
    rules.find((rule) => matches(patternOf(rule) ?? '', key))
  const rules = [
    { name: 'history', rule: first(history, (rule) => parseHistoryRule(rule)?.pattern), otherwise: unlisted },
    { name: 'retain', rule: first(retain), otherwise: 'not retained' },
    { name: 'meta', rule: first(meta), otherwise: 'tells no publisher' },
    { name: 'overflow', rule: first(overflow, (rule) => parseOverflowRule(rule)?.pattern), otherwise: 'disconnect' },
  ].map(({ name, rule, otherwise }) => ({
    name,
    rule: rule ?? null,
    effect: rule ?? otherwise,
    source: rule === undefined ? 'no rule' : sourceOf(name, sources),
  }))
  if (isJson) terminal.stdout.write(`${JSON.stringify({ key, rules }, null, 2)}\n`)
  else {
    const lines = rules.map(({ name, effect, source }) => `${name.padEnd(10)}${printable(`${effect}  (${source})`)}\n`)
    terminal.stdout.write(lines.join(''))
  }
}
