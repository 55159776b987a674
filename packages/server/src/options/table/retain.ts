import { isPattern } from 'webmq-client/protocol'
import type { OptionSpec } from '../spec.js'
import { GIB, MIB } from './checks.js'

/** The last message of each key, for state topics. */
export const RETAIN_OPTIONS = [
  {
    name: 'retain',
    section: 'History',
    flag: 'retain',
    type: 'list',
    separator: ';',
    placeholder: 'pattern',
    defaultText: 'no key is retained',
    check: (value) => (isPattern(value) ? undefined : 'a pattern, as in prices.#'),
    help: 'Keys whose last message is kept, for `state` of a client: `prices.#`.',
    detail:
      'The last message of such a key stays readable when the log has dropped it. An empty payload removes the key. Retained keys are logged, also without a rule of `history`. All nodes of a system must have the same patterns. Not with a mesh. In one text, as in the environment variable, separate patterns with `;`.',
  },
  {
    name: 'retainMaxKeys',
    section: 'History',
    flag: 'retain-max-keys',
    type: 'integer',
    min: 1,
    max: 10_000_000,
    default: 2_000,
    help: 'Most keys that are retained; a publish to a further key is refused with `E_STATE_LIMIT`.',
    detail:
      'At most a quarter of `historyMaxMessages`, except with the memory broker: the log of a broker between machines also carries the retained messages.',
  },
  {
    name: 'retainMaxBytes',
    section: 'History',
    flag: 'retain-max-bytes',
    type: 'integer',
    unit: 'bytes',
    min: 1,
    max: 16 * GIB,
    default: 4 * MIB,
    help: 'Most bytes of retained keys and payloads; a publish beyond is refused with `E_STATE_LIMIT`.',
    detail: 'At most a quarter of `historyMaxBytes`, except with the memory broker.',
  },
] as const satisfies readonly OptionSpec[]
