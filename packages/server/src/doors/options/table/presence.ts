import { integer } from '../spec.js'
import { GIB, MAX_TIMER_MS, MIB } from './checks.js'

export const PRESENCE_OPTIONS = {
  presenceTtlMs: integer({
    range: [500, MAX_TIMER_MS],
    default: 15_000,
    help: 'Time until the members of a crashed or disconnected node are removed on all other nodes.',
    detail: 'A node renews its lease three times within this time.',
  }),
  presenceLingerMs: integer({
    range: [0, MAX_TIMER_MS],
    default: 5000,
    help: 'Time that a member stays after its connection was lost.',
  }),
  presenceMaxDataBytes: integer({
    reloadable: true,
    range: [0, 65_536],
    default: 4096,
    help: 'Largest data of one member; larger data is refused with `E_PAYLOAD_TOO_LARGE`.',
  }),
  presenceMaxMembersPerKey: integer({
    flag: 'presence-max-per-key',
    reloadable: true,
    range: [1, 1_000_000],
    default: 1000,
    help: 'Members of one key; further ones are refused with `E_PRESENCE_LIMIT`.',
    detail: 'All members of a key are sent at once, so together they may use half of `maxOutboxBytes`.',
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
    help: 'Members of one user (`sub` of the token), or of one address of anonymous clients, on this node; further ones are refused with `E_PRESENCE_LIMIT`.',
    detail:
      'Members that stay after a lost connection count. Behind a loopback or private address is usually a proxy: anonymous clients there may have a quarter of `presenceMaxMembers`.',
  }),
  presenceMaxMembers: integer({
    reloadable: true,
    range: [0, 100_000_000],
    default: 100_000,
    help: 'Members of all keys and all nodes; further ones are refused with `E_PRESENCE_LIMIT`.',
  }),
  presenceMaxBytes: integer({
    flag: 'presence-max-bytes',
    reloadable: true,
    range: [0, 16 * GIB],
    default: 256 * MIB,
    help: 'Bytes of the members of all keys and all nodes; further ones are refused with `E_PRESENCE_LIMIT`.',
    detail: 'A member counts as the JSON that clients get.',
  }),
}
