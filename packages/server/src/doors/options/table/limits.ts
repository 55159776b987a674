import { OVERRIDABLE_LIMITS } from '../../../kernel/identity/limit-overrides.js'
import { OVERFLOW_RULE_FORM, parseOverflowRule } from '../../../kernel/ports/overflow-rules.js'
import { integer, list } from '../spec.js'
import { GIB, MAX_TIMER_MS, MIB } from './checks.js'

export const LIMITS_OPTIONS = {
  maxPayloadBytes: integer({
    range: [1, 64 * MIB],
    default: 256 * 1024,
    help: 'Largest payload of one message; a larger one is refused with `E_PAYLOAD_TOO_LARGE`.',
  }),
  maxOutboxBytes: integer({
    range: [8192, GIB],
    default: MIB,
    help: 'Bytes that may wait for one connection; a client that reads too slowly is closed with 4008.',
    detail: 'At least `maxPayloadBytes` + 4,096. Replays use half of it, and a single message all of it.',
  }),
  maxHeaderBytes: integer({
    range: [1024, MIB],
    default: 8192,
    help: 'Largest request head; larger ones get a 431.',
  }),
  maxConnections: integer({
    range: [0, 10_000_000],
    default: 0,
    help: 'Most open connections; further ones get a 503.',
    detail: '`0` allows as many as the descriptor limit does. A lower limit keeps descriptors free for health checks.',
  }),
  maxConnectionsPerAddress: integer({
    reloadable: true,
    range: [1, 10_000_000],
    default: 1000,
    help: 'Open connections and handshakes of one client address; further ones are refused with 503.',
    detail:
      'An IPv6 address counts as its /64. Loopback and private addresses are not counted, because behind them is usually a proxy; count there instead. Raise it if your proxy has a public address.',
  }),
  maxConnectionsPerUser: integer({
    reloadable: true,
    range: [1, 10_000_000],
    default: 100,
    help: 'Open connections of one user (`sub` of the token) to this node; further ones are closed with 4013.',
    detail: 'Anonymous clients are not counted.',
  }),
  maxListensPerConnection: integer({
    flag: 'max-listens',
    reloadable: true,
    range: [0, 1_000_000],
    default: 128,
    help: 'Patterns that one connection may listen to; further ones are refused with `E_LISTEN_LIMIT`.',
  }),
  maxSearchListensPerConnection: integer({
    flag: 'max-search-listens',
    reloadable: true,
    range: [0, 1_000_000],
    default: 16,
    help: 'Patterns with a `#` before their last word that one connection may listen to.',
    detail:
      'Such patterns (`#.error`, `a.#.b`) have to be searched in every key, so they are the dearest to match. Further ones are refused with `E_LISTEN_LIMIT`. Listeners in the process do not count.',
  }),
  maxRequestsPerConnection: integer({
    flag: 'max-requests',
    reloadable: true,
    range: [0, 65_536],
    default: 256,
    help: 'Requests of one connection that may wait for a reply; further ones are refused with `E_RATE_LIMIT`.',
    detail: 'A node holds at most 65,536, and 4,096 of one user or one address of anonymous clients.',
  }),
  maxWords: integer({
    reloadable: true,
    range: [1, 128],
    default: 32,
    help: 'Most words of a key, and of a pattern of a client or a token.',
    detail:
      'Longer keys are refused with `E_KEY_INVALID`, longer patterns with `E_PATTERN_INVALID`; a token with a longer pattern is refused with `E_TOKEN_INVALID`. Messages from other programs at the broker may have more words.',
  }),
  maxHashes: integer({
    reloadable: true,
    range: [1, 128],
    default: 3,
    help: 'Most `#` in a pattern of a client or a token.',
    detail: 'Refused as longer patterns are.',
  }),
  workPerSecond: integer({
    reloadable: true,
    range: [1000, 1_000_000_000],
    default: 500_000,
    help: 'Work that one connection may cause per second, in units of about a microsecond of one core.',
    detail:
      'Each request costs units by its size and kind: a publish one or two, a read of the log one per few messages. A connection that has used up its work is not read until it has some again, so one client cannot take the whole event loop from the others. With the `uws` transport, which cannot stop reading, its messages are then refused with `E_RATE_LIMIT`.',
  }),
  workBurst: integer({
    reloadable: true,
    range: [1000, 1_000_000_000],
    default: 500_000,
    help: 'Units of work that one connection may cause at once after it was idle.',
  }),
  maxPatternBytes: integer({
    flag: 'max-pattern-memory',
    range: [65_536, 64 * GIB],
    default: GIB,
    help: 'Estimated memory of the patterns that a node routes; new ones are then refused with `E_LISTEN_LIMIT`.',
    detail:
      'Listeners of one pattern share its memory. A million patterns such as `orders.4711.status` count as 660 MiB.',
  }),
  maxListensPerUser: integer({
    defaultText: 'unlimited',
    range: OVERRIDABLE_LIMITS.maxListensPerUser,
    help: 'Listens of all connections of one user to this node; further ones are refused with `E_LISTEN_LIMIT`.',
    detail: 'A [token](security.md#limits-of-a-user) may replace this limit, and those below.',
  }),
  maxPublishesPerSecond: integer({
    defaultText: 'unlimited',
    range: OVERRIDABLE_LIMITS.maxPublishesPerSecond,
    help: 'Publishes of one connection per second; further ones are refused with `E_RATE_LIMIT`.',
    detail: 'A refused publish says when to try again; the client library sends it again by itself, in order.',
  }),
  maxPublishBytesPerSecond: integer({
    unit: 'bytes',
    defaultText: 'unlimited',
    range: OVERRIDABLE_LIMITS.maxPublishBytesPerSecond,
    help: 'Bytes of payload that one connection may publish per second; further publishes are refused with `E_RATE_LIMIT`.',
    detail:
      'A payload larger than the burst passes too. Further publishes are refused for the time that it takes at the rate.',
  }),
  maxPublishesPerSecondPerUser: integer({
    defaultText: 'unlimited',
    range: OVERRIDABLE_LIMITS.maxPublishesPerSecondPerUser,
    help: 'Publishes of all connections of one user to this node per second, those over HTTP included.',
  }),
  maxPublishBytesPerSecondPerUser: integer({
    unit: 'bytes',
    defaultText: 'unlimited',
    range: OVERRIDABLE_LIMITS.maxPublishBytesPerSecondPerUser,
    help: 'Bytes of payload that all connections of one user to this node may publish per second.',
    detail: 'As above, for bytes.',
  }),
  publishBurstMs: integer({
    range: [1, 3_600_000],
    default: 2_000,
    help: 'How much may come at once after a rest, as the time in which it would come at the rate.',
    detail: 'Applies to the four rates above. With 10 publishes per second and `2s`, 20 may come at once.',
  }),
  streamLeaseMs: integer({
    range: [1_000, 3_600_000],
    default: 10_000,
    help: 'Silence after which the writer of a stream is given up: its readers are told `lost`.',
    detail: 'A writer that has nothing to append says every third of this time that it is alive.',
  }),
  streamBodyTimeoutMs: integer({
    range: [100, MAX_TIMER_MS],
    default: 300_000,
    help: 'Time for which a request that writes a stream by its body may send nothing; then the stream fails.',
  }),
  maxStreamBytes: integer({
    range: [1_024, 64 * MIB],
    default: 512 * 1024,
    help: 'Bytes of one stream, as JSON; further appends are refused with `E_STREAM_LIMIT`.',
    detail: 'A stream is read as one message. So at most half of `maxOutboxBytes` counts, whatever this says.',
  }),
  maxStreamAppends: integer({
    range: [1, 100_000_000],
    default: 100_000,
    help: 'Appends of one stream; further ones are refused with `E_STREAM_LIMIT`.',
  }),
  maxStreamsPerUser: integer({
    range: [1, 10_000_000],
    default: 16,
    help: 'Streams that one user, or one address of anonymous clients, writes at the same time through this node.',
    detail:
      'Beyond it, an append to a stream that another node has begun is refused with `E_RATE_LIMIT`: its writer tries again. Streams of a PUT at `streamsPath` do not count: those that nobody uses give way to others.',
  }),
  maxStreamsPerNode: integer({
    range: [1, 10_000_000],
    default: 10_000,
    help: 'Keys whose streams a node watches, because somebody writes or reads them; further ones are refused with `E_STREAM_LIMIT`.',
    detail:
      'Their texts take at most 64 MiB together; those that were asked for the longest ago are read from the log again. Streams of a PUT that nobody uses are given up for others.',
  }),
  overflow: list({
    separator: ';',
    placeholder: 'rule',
    defaultText: 'every listen is `disconnect`',
    check: (value) => (parseOverflowRule(value) === undefined ? OVERFLOW_RULE_FORM : undefined),
    help: 'Which messages a slow reader may miss, by pattern: `prices.#=latest`.',
    detail:
      'The first rule whose pattern contains the pattern of a listen applies to it; without one, `disconnect` does. [docs/guarantees.md](guarantees.md#slow-readers) says what each means.',
  }),
}
