import { HISTORY_RULE_FORM, parseHistoryRule } from '../../ports/history-rules.js'
import type { OptionSpec } from '../spec.js'
import { GIB, MAX_TIMER_MS, MIB } from './checks.js'

/** What is logged, and for how long; message ids. */
export const HISTORY_OPTIONS = [
  {
    name: 'history',
    section: 'History',
    flag: 'history',
    type: 'list',
    separator: ';',
    placeholder: 'rule',
    defaultText: 'with the memory broker `#=10000`, otherwise nothing',
    check: (value) => (parseHistoryRule(value) === undefined ? HISTORY_RULE_FORM : undefined),
    help: 'Keys to log, for replay after a reconnect and for history: `chat.#=100,10m`.',
    detail:
      'The first rule whose pattern matches a key applies to it. Messages of keys without a rule are not logged. `messages` limits how many of the newest messages a request by number or time gets, `age` how old they may be. Every node keeps a copy of the log, limited by the next two options. All nodes of a system must have the same rules. In one text, as in the environment variable, separate rules with `;`.',
  },
  {
    name: 'historyMaxMessages',
    section: 'History',
    flag: 'history-max-messages',
    type: 'integer',
    min: 0,
    max: 100_000_000,
    default: 10_000,
    help: 'Messages that a node and its broker keep in the log, over all keys; the oldest are dropped first.',
    detail: '`0` keeps none; every reconnect is then a gap.',
  },
  {
    name: 'historyMaxBytes',
    section: 'History',
    flag: 'history-max-bytes',
    type: 'integer',
    unit: 'bytes',
    min: 0,
    max: 64 * GIB,
    default: 16 * MIB,
    help: 'Bytes that a node and its broker keep in the log; the oldest messages are dropped first.',
  },
  {
    name: 'dedupeWindowMs',
    section: 'History',
    flag: 'dedupe-window',
    type: 'integer',
    unit: 'ms',
    min: 0,
    max: MAX_TIMER_MS,
    default: 120_000,
    help: 'Time that message ids are remembered to find duplicates; `0` disables it.',
    detail:
      'After a reconnect, clients publish unanswered messages again. Without the window, some would be delivered twice.',
  },
  {
    name: 'dedupeMaxIds',
    section: 'History',
    flag: 'dedupe-max-ids',
    type: 'integer',
    min: 0,
    max: 10_000_000,
    default: 100_000,
    help: 'Most message ids that are remembered; the oldest are dropped first.',
    detail: 'The stream of NATS holds at least so many messages, within `historyMaxBytes`.',
  },
] as const satisfies readonly OptionSpec[]
