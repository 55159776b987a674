import { OVERFLOW_RULE_FORM, parseOverflowRule } from '../../patterns/overflow-rules.js'
import type { OptionSpec } from '../spec.js'

/** What readers that lag get. */
export const SLOW_OPTIONS = [
  {
    name: 'slow',
    section: 'Limits',
    flag: 'slow',
    type: 'list',
    separator: ';',
    placeholder: 'rule',
    defaultText: 'every listen is `disconnect`',
    check: (value) => (parseOverflowRule(value) === undefined ? OVERFLOW_RULE_FORM : undefined),
    help: 'Which messages a slow reader may miss, by pattern: `prices.#=latest`.',
    detail:
      'The first rule whose pattern contains the pattern of a listen applies to it; without one, `disconnect` does. `disconnect` closes the connection with 4008. `drop-oldest` leaves out the oldest messages, and says so with a gap. `latest` leaves out all messages of a key but the newest. A listen may ask for something else. [docs/guarantees.md](guarantees.md#slow-readers) says what each means. In one text, as in the environment variable, separate rules with `;`.',
  },
] as const satisfies readonly OptionSpec[]
