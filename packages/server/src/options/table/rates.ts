import { OVERRIDABLE_LIMITS } from '../../identity/limit-overrides.js'
import type { OptionSpec } from '../spec.js'

const rate = { section: 'Limits', type: 'integer', defaultText: 'unlimited' } as const

/** How fast clients may publish, and what one user may have. */
export const RATES_OPTIONS = [
  {
    ...rate,
    ...OVERRIDABLE_LIMITS.maxListensPerUser,
    name: 'maxListensPerUser',
    flag: 'max-listens-per-user',
    help: 'Listens of all connections of one user to this node; further ones are refused with `E_LISTEN_LIMIT`.',
    detail:
      'The user is the `sub` of the token; anonymous clients are not counted. A token may replace this limit, and those below, with the claim `webmq.limits`.',
  },
  {
    ...rate,
    ...OVERRIDABLE_LIMITS.maxPublishesPerSecond,
    name: 'maxPublishesPerSecond',
    flag: 'max-publishes-per-second',
    help: 'Publishes of one connection per second; further ones are refused with `E_RATE_LIMIT`.',
    detail:
      'Without it, `workPerSecond` alone limits a connection. A refused publish says when to try again; the client library sends it again by itself, in order.',
  },
  {
    ...rate,
    ...OVERRIDABLE_LIMITS.maxPublishBytesPerSecond,
    name: 'maxPublishBytesPerSecond',
    flag: 'max-publish-bytes-per-second',
    unit: 'bytes',
    help: 'Bytes of payload that one connection may publish per second; further publishes are refused with `E_RATE_LIMIT`.',
    detail:
      'A payload larger than the burst passes too. Further publishes are refused for the time that it takes at the rate.',
  },
  {
    ...rate,
    ...OVERRIDABLE_LIMITS.maxPublishesPerSecondPerUser,
    name: 'maxPublishesPerSecondPerUser',
    flag: 'max-publishes-per-second-per-user',
    help: 'Publishes of all connections of one user to this node per second, those over HTTP included.',
    detail: 'Otherwise a user could open connections until none of them reaches its own limit.',
  },
  {
    ...rate,
    ...OVERRIDABLE_LIMITS.maxPublishBytesPerSecondPerUser,
    name: 'maxPublishBytesPerSecondPerUser',
    flag: 'max-publish-bytes-per-second-per-user',
    unit: 'bytes',
    help: 'Bytes of payload that all connections of one user to this node may publish per second.',
    detail: 'As above, for bytes.',
  },
  {
    section: 'Limits',
    type: 'integer',
    name: 'publishBurstMs',
    flag: 'publish-burst',
    unit: 'ms',
    min: 1,
    max: 3_600_000,
    default: 2_000,
    help: 'How much may come at once after a rest, as the time in which it would come at the rate.',
    detail:
      'Applies to the four rates above. With 10 publishes per second and `2s`, 20 may come at once. A client that reconnects publishes what it could not before.',
  },
] as const satisfies readonly OptionSpec[]
