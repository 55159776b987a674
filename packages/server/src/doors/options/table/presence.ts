import { integer } from '../spec.js'
import { GIB, MAX_TIMER_MS, MIB } from './checks.js'

export const PRESENCE_OPTIONS = {
  presenceTtlMs: integer({
    range: [500, MAX_TIMER_MS],
    default: 15_000,
    help: 'Time until the members of a crashed or disconnected node are removed on all other nodes.',
    detail:
      'A node renews its lease three times within this time. A shorter time detects crashes sooner, but may mistake a busy node for a dead one.',
  }),
  presenceLingerMs: integer({
    range: [0, MAX_TIMER_MS],
    default: 5000,
    help: 'Time that a member stays after its connection was lost.',
    detail:
      'So other clients see no leave when a client reconnects to any node or a page is reloaded. A member that leaves, or whose client closes, is removed at once.',
  }),
  presenceMaxDataBytes: integer({
    reloadable: true,
    range: [0, 65_536],
    default: 4096,
    help: 'Largest data of one member; larger data is refused with `E_PAYLOAD_TOO_LARGE`.',
    detail: 'Every node keeps the data of all members in memory and sends it to all watchers.',
  }),
  presenceMaxMembersPerKey: integer({
    flag: 'presence-max-per-key',
    reloadable: true,
    range: [1, 1_000_000],
    default: 1000,
    help: 'Members of one key; further ones are refused with `E_PRESENCE_LIMIT`.',
    detail:
      'When n members watch each other come and go, n × n messages are sent; count large crowds instead. All members of a key are sent at once, so together they may use half of `maxOutboxBytes`.',
  }),
  presenceMaxKeysPerConnection: integer({
    flag: 'presence-max-keys',
    reloadable: true,
    range: [0, 1_000_000],
    default: 128,
    help: 'Keys that one connection may enter, and may watch; further ones are refused with `E_PRESENCE_LIMIT`.',
    detail: '`0` disables presence.',
  }),
  presenceMaxMembersPerUser: integer({
    reloadable: true,
    range: [0, 100_000_000],
    default: 1000,
    help: 'Members of one user (`sub` of the token) on this node; further ones are refused with `E_PRESENCE_LIMIT`.',
    detail:
      'So no user can fill `presenceMaxMembers`. Members that stay after a lost connection count. Anonymous clients have no user; for them the limit per connection applies.',
  }),
  presenceMaxMembers: integer({
    reloadable: true,
    range: [0, 100_000_000],
    default: 100_000,
    help: 'Members of all keys and all nodes; further ones are refused with `E_PRESENCE_LIMIT`.',
    detail:
      'Every participating node keeps all members in memory. Members that enter on several nodes at once may exceed the limit; a node never keeps more than twice as many.',
  }),
  presenceMaxBytes: integer({
    flag: 'presence-max-bytes',
    reloadable: true,
    range: [0, 16 * GIB],
    default: 256 * MIB,
    help: 'Bytes of the members of all keys and all nodes; further ones are refused with `E_PRESENCE_LIMIT`.',
    detail:
      'A member counts as the JSON that clients get. Members that enter on several nodes at once may exceed the limit; a node takes no new member of another node beyond twice the limit.',
  }),
}
