import { isPattern } from 'webmq-client/protocol'
import { historyRuleDefect } from '../../../kernel/ports/history-rules.js'
import { integer, list } from '../spec.js'
import { GIB, MAX_TIMER_MS, MIB } from './checks.js'

export const HISTORY_OPTIONS = {
  history: list({
    separator: ';',
    placeholder: 'rule',
    defaultText: 'with the memory broker `#=10000`, otherwise nothing',
    check: historyRuleDefect,
    help: 'Keys to log, for replay after a reconnect and for history: `chat.#=100,10m`.',
    detail:
      'The first rule whose pattern matches a key applies to it. Messages of keys without a rule are not logged. `messages` limits how many of the newest messages a request by number or time gets, `age` how old they may be. Every node keeps a copy of the log, limited by the next two options. All nodes of a system must have the same rules.',
  }),
  historyMaxMessages: integer({
    range: [0, 100_000_000],
    default: 10_000,
    help: 'Messages that a node and its broker keep in the log, over all keys; the oldest are dropped first.',
    detail:
      '`0` keeps none; every reconnect is then a gap. The keys are in the heap of the process: a number whose shortest keys do not fit is refused.',
  }),
  historyMaxBytes: integer({
    flag: 'history-max-bytes',
    range: [0, 64 * GIB],
    default: 16 * MIB,
    help: 'Bytes that a node and its broker keep in the log; the oldest messages are dropped first.',
    detail: 'More than the memory of the machine or container is refused.',
  }),
  dedupeWindowMs: integer({
    range: [0, MAX_TIMER_MS],
    default: 120_000,
    help: 'Time that message ids are remembered to find duplicates; `0` disables it.',
  }),
  dedupeMaxIds: integer({
    range: [0, 10_000_000],
    default: 100_000,
    help: 'Most message ids that are remembered; the oldest are dropped first.',
    detail: 'The stream of NATS holds at least as many messages, within `historyMaxBytes`.',
  }),
  meta: list({
    separator: ';',
    placeholder: 'pattern',
    check: (value) => (isPattern(value) ? undefined : 'a pattern, such as `chat.#`'),
    help: 'Keys whose messages say who published them, and when: `chat.#`. Listeners ask for it with `meta`.',
    detail:
      'The server stamps each message of these keys with the user of the publisher, its own time, and an id. Whoever may listen to a key may ask for them, so name no keys whose publishers must stay unknown. All nodes of a system must have the same patterns. [docs/protocol.md](protocol.md#15-messages-that-say-who-and-when) has the details.',
  }),
  retain: list({
    separator: ';',
    placeholder: 'pattern',
    defaultText: 'no key is retained',
    check: (value) => (isPattern(value) ? undefined : 'a pattern, as in prices.#'),
    help: 'Keys whose last message is kept, for `state` of a client: `prices.#`.',
    detail:
      'An empty payload removes the key. Retained keys are logged, also without a rule of `history`. All nodes of a system must have the same patterns. Not with a mesh.',
  }),
  retainMaxKeys: integer({
    range: [1, 10_000_000],
    default: 2_000,
    help: 'Most keys that are retained; a publish to a further key is refused with `E_STATE_LIMIT`.',
    detail:
      'At most a quarter of `historyMaxMessages`, except with the memory broker: the log of a broker between machines also carries the retained messages.',
  }),
  retainMaxBytes: integer({
    flag: 'retain-max-bytes',
    range: [1, 16 * GIB],
    default: 4 * MIB,
    help: 'Most bytes of retained keys and payloads; a publish beyond is refused with `E_STATE_LIMIT`.',
    detail: 'At most a quarter of `historyMaxBytes`, except with the memory broker.',
  }),
}
