import { parseHistoryRule } from '../../kernel/ports/history-rules.js'
import type { ResolvedOptions } from './server-options.js'

type LogOptions = Pick<
  ResolvedOptions,
  'history' | 'historyMaxMessages' | 'historyMaxBytes' | 'maxPayloadBytes' | 'retain' | 'retainMaxBytes'
>

/** A short message of JSON. */
const SHORT_MESSAGE_BYTES = 100

/** What rules of `history` and `retain` say and the bounds of the log do not hold; one sentence each. */
export function logWarnings(options: LogOptions): readonly string[] {
  const { history, historyMaxMessages, historyMaxBytes, maxPayloadBytes, retain, retainMaxBytes } = options
  const rules = history.map(parseHistoryRule).filter((rule) => rule !== undefined)
  const warnings: string[] = []
  if (rules.length > 0 && (historyMaxMessages === 0 || historyMaxBytes === 0))
    return ['history does nothing: historyMaxMessages or historyMaxBytes is 0, so nothing is logged']
  for (const { pattern, maxMessages } of rules) {
    if (maxMessages > historyMaxMessages)
      warnings.push(
        `history ${pattern}=${maxMessages}: the log holds ${historyMaxMessages} messages of all keys together; raise historyMaxMessages (--history-max-messages), or lower the rule`,
      )
  }
  const wantedCount = rules.reduce((sum, { maxMessages }) => sum + maxMessages, 0)
  if (warnings.length === 0 && wantedCount > historyMaxMessages)
    warnings.push(
      `history: one key of each rule is ${wantedCount} messages, and the log holds ${historyMaxMessages} of all keys together; raise historyMaxMessages (--history-max-messages), or lower the rules`,
    )
  const heldCount = Math.min(wantedCount, historyMaxMessages)
  if (heldCount * SHORT_MESSAGE_BYTES > historyMaxBytes)
    warnings.push(
      `history: ${heldCount} messages of ${SHORT_MESSAGE_BYTES} bytes do not fit historyMaxBytes, ${historyMaxBytes}; raise it (--history-max-bytes)`,
    )
  if (rules.length > 0 && maxPayloadBytes > historyMaxBytes)
    warnings.push(
      `historyMaxBytes is ${historyMaxBytes}: a message of maxPayloadBytes, ${maxPayloadBytes}, is dropped from the log at once`,
    )
  if (retain.length > 0 && maxPayloadBytes > retainMaxBytes)
    warnings.push(
      `retainMaxBytes is ${retainMaxBytes}: a retained message of maxPayloadBytes, ${maxPayloadBytes}, is refused with E_STATE_LIMIT`,
    )
  return warnings
}
