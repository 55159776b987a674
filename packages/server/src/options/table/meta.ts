import { isPattern } from 'webmq-client/protocol'
import type { OptionSpec } from '../spec.js'

/** What messages say about themselves. */
export const META_OPTIONS = [
  {
    name: 'meta',
    section: 'History',
    flag: 'meta',
    type: 'list',
    separator: ';',
    placeholder: 'pattern',
    defaultText: 'none',
    check: (value) => (isPattern(value) ? undefined : 'a pattern, such as `chat.#`'),
    help: 'Keys whose messages say who published them, and when: `chat.#`. Listeners ask for it with `meta`.',
    detail:
      'The server stamps each message of these keys with the user of the publisher, its own time, and an id. Whoever may listen to a key may ask for them, so name no keys whose publishers must stay unknown. All nodes of a system must have the same patterns. In one text, as in the environment variable, separate patterns with `;`. [docs/protocol.md](protocol.md#15-messages-that-say-who-and-when) has the details.',
  },
] as const satisfies readonly OptionSpec[]
