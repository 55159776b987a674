import type { ServerStats } from '../api.js'
import type { BrokerStatus } from '../ports/broker.js'

/** What metrics are read from. */
export interface MetricsSource {
  readonly node: string
  readonly version: string
  readonly broker: string
  readonly stats: ServerStats
}

/** One value, and by what it differs from the others of its metric. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
}

/** One metric: what `/metrics` says of it, and `docs/operations.md`. */
export interface MetricSpec {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly help: string
  /** Names of labels; their values come from a closed list, never from keys, patterns or users. */
  readonly labels: readonly string[]
  read(source: MetricsSource): readonly Sample[]
}

const STATUSES: readonly BrokerStatus[] = ['up', 'blocked', 'down']

/** Every metric of a node. They are read from counters that are kept anyway, when somebody asks. */
export const METRICS: readonly MetricSpec[] = [
  {
    name: 'webmq_build_info',
    type: 'gauge',
    help: 'Always 1; the labels say which version runs, the name of the node, and which broker it has.',
    labels: ['version', 'node', 'broker'],
    read: ({ version, node, broker }) => [{ labels: { version, node, broker }, value: 1 }],
  },
  gauge('webmq_connections', 'Connections that are open.', ({ connectionCount }) => connectionCount),
  gauge('webmq_patterns', 'Patterns that someone on this node listens with.', ({ patternCount }) => patternCount),
  counter(
    'webmq_client_messages_total',
    'Protocol messages that connections have sent: publishes, listens and all others.',
    ({ receivedCount }) => receivedCount,
  ),
  labelled(
    'webmq_refused_total',
    'Protocol messages that were answered with an error, by its code.',
    'code',
    ({ refusedCounts }) => refusedCounts,
  ),
  counter(
    'webmq_routed_total',
    'Messages that someone on this node listened to, each counted once.',
    ({ routedCount }) => routedCount,
  ),
  counter(
    'webmq_local_dropped_total',
    'Messages that handlers in the process of the server were too slow for.',
    ({ localDroppedCount }) => localDroppedCount,
  ),
  labelled(
    'webmq_gaps_total',
    'Patterns whose listeners were told that messages may be missing, by reason.',
    'reason',
    ({ gapCounts }) => gapCounts,
  ),
  {
    name: 'webmq_broker_status',
    type: 'gauge',
    help: '1 for the status that the broker has, 0 for the others: up, blocked (takes no messages for now), down.',
    labels: ['status'],
    read: ({ stats }) =>
      STATUSES.map((status) => ({ labels: { status }, value: stats.broker.status === status ? 1 : 0 })),
  },
  counter(
    'webmq_broker_accepted_total',
    'Messages that the broker has accepted from this node.',
    ({ broker }) => broker.acceptedCount,
  ),
  counter(
    'webmq_broker_rejected_total',
    'Publishes that the broker has refused, or that were given up.',
    ({ broker }) => broker.rejectedCount,
  ),
  counter(
    'webmq_broker_received_total',
    'Messages that came to this node over the network, wanted or not.',
    ({ broker }) => broker.receivedCount,
  ),
  counter(
    'webmq_broker_surplus_total',
    'Of those, messages that nobody on this node wanted, or that had come before.',
    ({ broker }) => broker.surplusCount,
  ),
  counter(
    'webmq_broker_malformed_total',
    'Messages from elsewhere that could not be one of WebMQ, and were left out.',
    ({ broker }) => broker.malformedCount,
  ),
  counter('webmq_broker_lost_total', 'Times that the broker was lost.', ({ broker }) => broker.lostCount),
  counter(
    'webmq_broker_away_seconds_total',
    'Time in which the broker was not up, since it first was.',
    ({ broker }) => broker.awayMs / 1_000,
  ),
  gauge(
    'webmq_broker_last_away_seconds',
    'Time that it took the last time until the broker was up again.',
    ({ broker }) => broker.lastAwayMs / 1_000,
  ),
  gauge('webmq_broker_pending_messages', 'Publishes that wait to be accepted.', ({ broker }) => broker.pendingCount),
  gauge(
    'webmq_broker_pending_bytes',
    'Bytes of the publishes that wait to be accepted.',
    ({ broker }) => broker.pendingBytes,
  ),
  gauge(
    'webmq_presence_members',
    'Members of presence that this node knows of, of all nodes.',
    ({ presence }) => presence.memberCount,
  ),
  gauge(
    'webmq_presence_own_members',
    'Of those, members of connections of this node.',
    ({ presence }) => presence.ownMemberCount,
  ),
  gauge(
    'webmq_presence_watched_keys',
    'Keys whose members connections of this node watch.',
    ({ presence }) => presence.watchedKeyCount,
  ),
  gauge('webmq_presence_peers', 'Other nodes that take part in presence.', ({ presence }) => presence.peerCount),
  counter(
    'webmq_presence_dropped_total',
    'Messages of presence that were not understood, and members of other nodes that were too many to be kept.',
    ({ presence }) => presence.droppedCount,
  ),
  counter(
    'webmq_transport_accepted_total',
    'Connections that were accepted.',
    ({ transport }) => transport.acceptedCount,
  ),
  counter('webmq_transport_refused_total', 'Upgrades that were refused.', ({ transport }) => transport.refusedCount),
  counter('webmq_transport_closed_total', 'Connections that have ended.', ({ transport }) => transport.closedCount),
  counter(
    'webmq_transport_slow_consumers_total',
    'Connections that were closed because they read slower than they were sent to.',
    ({ transport }) => transport.slowConsumerCount,
  ),
  counter(
    'webmq_transport_received_messages_total',
    'WebSocket messages that came.',
    ({ transport }) => transport.receivedMessageCount,
  ),
  counter('webmq_transport_received_bytes_total', 'Bytes that came.', ({ transport }) => transport.receivedByteCount),
  counter(
    'webmq_transport_delivered_total',
    'Frames for connections, one per receiver.',
    ({ transport }) => transport.deliveredCount,
  ),
  counter('webmq_transport_sent_bytes_total', 'Bytes that were sent.', ({ transport }) => transport.sentByteCount),
  gauge(
    'webmq_transport_outbox_bytes',
    'Bytes that wait for connections; what several share counts once.',
    ({ transport }) => transport.outboxBytes,
  ),
]

function gauge(name: string, help: string, read: (stats: ServerStats) => number): MetricSpec {
  return { name, type: 'gauge', help, labels: [], read: ({ stats }) => [{ value: read(stats) }] }
}

function counter(name: string, help: string, read: (stats: ServerStats) => number): MetricSpec {
  return { name, type: 'counter', help, labels: [], read: ({ stats }) => [{ value: read(stats) }] }
}

function labelled(
  name: string,
  help: string,
  label: string,
  read: (stats: ServerStats) => Readonly<Partial<Record<string, number>>>,
): MetricSpec {
  const samples = (stats: ServerStats) =>
    Object.entries(read(stats)).map(([key, value = 0]) => ({ labels: { [label]: key }, value }))
  return { name, type: 'counter', help, labels: [label], read: ({ stats }) => samples(stats) }
}
