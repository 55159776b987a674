import type { GapReason } from 'webmq-client/protocol'
import type { WebhookStats } from '../hooks/index.js'
import { CLOSE_CODES, ERROR_CODES, HOOK_NAMES } from '../observing/measuring/measurements.js'
import type { BrokerStatus } from '../ports/broker.js'
import { flagged, type MetricSpec, metricsOf, namesOf } from './metric-spec.js'
import type { HttpDropReason } from './stats.js'

const BREAKER_STATES: readonly WebhookStats['breaker'][] = ['closed', 'open', 'half-open']
const STATUSES: readonly BrokerStatus[] = ['up', 'blocked', 'down']

/** All reasons; a missing one does not compile. */
const GAP_REASONS = namesOf<GapReason>({
  'history-expired': true,
  'epoch-changed': true,
  'no-history': true,
  limit: true,
  'slow-consumer': true,
  'broker-lost': true,
  refused: true,
  conflated: true,
})
const HTTP_DROP_REASONS = namesOf<HttpDropReason>({
  evicted: true,
  timeout: true,
  pipelining: true,
  full: true,
  rate: true,
})

/** All metrics of a node. Each request reads them from existing counters. */
export const METRICS: readonly MetricSpec[] = [
  {
    name: 'webmq_build_info',
    type: 'gauge',
    help: 'Always 1; the labels are the version, the name of the node and the broker.',
    labels: ['version', 'node', 'broker'],
    read: ({ version, node, broker }) => [{ labels: { version, node, broker }, value: 1 }],
  },
  ...metricsOf((stats) => stats, {
    webmq_connections: ['Open connections.', 'connectionCount'],
    webmq_users: ['Users with an open connection to this node.', 'userCount'],
    webmq_listens: ['Listens of all connections: subscriptions.', 'listenCount'],
    webmq_patterns: ['Patterns with a listener on this node.', 'patternCount'],
    webmq_pattern_bytes: ['Estimated memory of these patterns.', 'patternBytes'],
    webmq_client_messages_total: [
      'Protocol messages received from clients: publishes, listens and all others.',
      'receivedCount',
    ],
    'webmq_refused_total{code}': [
      'Protocol messages and requests of the HTTP API that were answered with an error, by error code.',
      'refusedCounts',
      ERROR_CODES,
    ],
    'webmq_refused_upgrades_total{code}': [
      'Upgrades that were refused, by error code.',
      'refusedUpgradeCounts',
      ERROR_CODES,
    ],
    'webmq_token_failures_total{reason}': [
      'Tokens that were refused, by reason; missing: none came in time.',
      'tokenFailureCounts',
    ],
    'webmq_closes_total{code}': [
      'Closed connections, by close code; 1006: without a close frame.',
      'closeCounts',
      CLOSE_CODES,
    ],
    'webmq_resumes_total{outcome}': [
      'Listens that asked for what they missed, by outcome: recovered, gap, sent-on (to another node).',
      'resumeCounts',
    ],
    webmq_routed_total: ['Messages with a listener on this node, each counted once.', 'routedCount'],
    webmq_local_dropped_total: ['Messages dropped because in-process handlers were too slow.', 'localDroppedCount'],
    'webmq_gaps_total{reason}': ['Gaps reported to listeners, one per pattern, by reason.', 'gapCounts', GAP_REASONS],
    'webmq_broker_refused_messages_total{reason}': [
      'Messages from the broker that no listener got, by reason: malformed, too-large (above maxPayloadBytes), failed.',
      'refusedMessageCounts',
    ],
  }),
  ...metricsOf(
    ({ timings }) => timings,
    {
      webmq_publish_duration_seconds: [
        'From the receipt of a publish until the broker accepted it; above 10,000 per second one of 256 stands for all.',
        'publish',
      ],
      webmq_broker_publish_duration_seconds: ['The part of it that the broker took: its round trip.', 'broker'],
      webmq_delivery_lag_seconds: [
        'From a publish on this node until it was passed to the listeners of this node; one message at a time is followed.',
        'lag',
      ],
      'webmq_hook_duration_seconds{hook}': [
        'Time that hooks took, by hook; a webhook takes the time of its request.',
        'hooks',
        HOOK_NAMES,
      ],
    },
    'histogram',
  ),
  ...metricsOf(({ work }) => work, {
    webmq_paused_connections: [
      'Connections that are not being read, because they have caused too much work.',
      'pausedCount',
    ],
    webmq_pauses_total: [
      'How often reading from a connection was paused, because it has caused too much work.',
      'pauseCount',
    ],
    webmq_backlog_bytes: ['Memory of messages that wait for the turn of their connection.', 'backlogBytes'],
  }),
  ...metricsOf(({ streams }) => streams, {
    webmq_streams: [
      'Streams that have not ended and that this node watches, because somebody writes or reads them.',
      'activeCount',
    ],
    webmq_stream_bytes: ['Estimated memory of them.', 'keptBytes'],
    webmq_stream_appends_total: ['Appends to streams through this node.', 'appendCount'],
    webmq_streams_lost_total: ['Streams that this node has ended because their writer was silent.', 'lostCount'],
  }),
  ...metricsOf(({ broker }) => broker, {
    'webmq_broker_status{status}': [
      '1 for the status of the broker, 0 for the others: up, blocked (accepts no messages at present), down.',
      ({ status }) => flagged(STATUSES, status),
    ],
    webmq_broker_accepted_total: ['Messages of this node that the broker has accepted.', 'acceptedCount'],
    webmq_broker_rejected_total: ['Publishes that the broker refused or that were abandoned.', 'rejectedCount'],
    webmq_broker_received_total: [
      'Messages that the broker sent to this node, with a listener or without.',
      'receivedCount',
    ],
    webmq_broker_surplus_total: [
      'Messages that the broker sent to this node without a listener, or twice.',
      'surplusCount',
    ],
    webmq_broker_lost_total: ['Lost connections to the broker.', 'lostCount'],
    webmq_broker_behind_total: [
      'Replays refused because this node had not read the log that far; the clients went to other nodes.',
      'behindCount',
    ],
    webmq_broker_away_seconds_total: [
      'Time during which the broker was not up, since it first was.',
      ({ awayMs }) => awayMs / 1_000,
    ],
    webmq_broker_last_away_seconds: ['Duration of the last broker outage.', ({ lastAwayMs }) => lastAwayMs / 1_000],
    webmq_broker_pending_messages: ['Publishes that wait for the broker.', 'pendingCount'],
    webmq_broker_pending_bytes: ['Bytes of publishes that wait for the broker.', 'pendingBytes'],
    webmq_retained_dropped_total: [
      'Messages of the log that were not retained, because other programs published far more keys or bytes than the limits.',
      ({ retained }) => retained?.droppedCount ?? 0,
    ],
  }),
  ...metricsOf(({ broker }) => broker.log, {
    webmq_log_messages: ["Messages in this node's copy of the log.", 'messageCount'],
    webmq_log_bytes: ['Bytes of payload of these messages.', 'byteCount'],
    webmq_log_oldest_timestamp_seconds: [
      'When the oldest of these messages was logged, in seconds since 1970; 0 for an empty log.',
      ({ oldestTimeMs }) => oldestTimeMs / 1_000,
    ],
    webmq_log_lag_seconds: [
      'Age of the newest of these messages when this node read it, by the clocks of broker and node.',
      ({ lagMs }) => lagMs / 1_000,
    ],
  }),
  ...metricsOf(({ broker }) => broker.retained, {
    webmq_retained_keys: ['Keys whose last message is retained.', 'keyCount'],
    webmq_retained_bytes: [
      'Bytes of these keys and their payloads; `retainMaxKeys` and `retainMaxBytes` limit both.',
      'byteCount',
    ],
  }),
  ...metricsOf(({ presence }) => presence, {
    webmq_presence_members: ['Presence members of all nodes that this node knows.', 'memberCount'],
    webmq_presence_own_members: ['Presence members of connections of this node.', 'ownMemberCount'],
    webmq_presence_watched_keys: ['Keys whose members are watched by connections of this node.', 'watchedKeyCount'],
    webmq_presence_peers: ['Other nodes that take part in presence.', 'peerCount'],
    webmq_presence_dropped_total: [
      'Presence messages that could not be read, and members of other nodes above the limit.',
      'droppedCount',
    ],
  }),
  ...metricsOf(({ queueGroups }) => queueGroups, {
    webmq_queue_groups: ['Queue groups of all nodes that this node knows, those of responders included.', 'groupCount'],
    webmq_queue_group_members: ['Members of queue groups on this node.', 'memberCount'],
    webmq_queue_group_pending: ['Messages that wait for the answer of the node of a member.', 'pendingCount'],
    webmq_requests_pending: ['Requests of this node that wait for a reply.', 'requestCount'],
    webmq_queue_group_handed_total: ['Messages and requests that members of this node have got.', 'handedCount'],
    webmq_queue_group_missed_total: [
      'Messages that no member got: the queue group had none any more, or a hook failed for them on this node.',
      'missedCount',
    ],
    webmq_queue_group_dropped_total: [
      'Messages about queue groups that could not be read, and members of other nodes above the limit.',
      'droppedCount',
    ],
  }),
  ...metricsOf(({ cluster }) => cluster, {
    webmq_cluster_peers: ['Other nodes that this node has heard of.', 'peerCount'],
    webmq_cluster_different_peers: [
      'Other nodes with other options that all must share, or of another version.',
      'differentCount',
    ],
    webmq_cluster_other_log_peers: [
      'Other nodes that log other keys: while there are any, the listeners of this node are told a gap every 3 s.',
      'otherLogCount',
    ],
    webmq_cluster_revocations: [
      'Revoked tokens and users that this node keeps until the tokens have expired.',
      'revocationCount',
    ],
    webmq_cluster_dropped_total: [
      'Messages about these that could not be read or came from too many nodes, and revocations above the limit.',
      'droppedCount',
    ],
  }),
  ...metricsOf(({ transport }) => transport, {
    webmq_transport_accepted_total: ['Accepted connections.', 'acceptedCount'],
    webmq_transport_refused_total: ['Refused upgrades.', 'refusedCount'],
    webmq_connections_limit: [
      'The most connections that the node holds: `maxConnections`, or what its descriptor limit leaves room for.',
      'connectionLimit',
    ],
    webmq_transport_proxy_header_refused_total: [
      'Connections of trusted proxies that were closed because they did not begin with a valid PROXY header.',
      'proxyHeaderRefusedCount',
    ],
    webmq_transport_closed_total: ['Ended connections.', 'closedCount'],
    webmq_transport_slow_consumers_total: [
      'Connections that were closed because the client read too slowly.',
      'slowConsumerCount',
    ],
    webmq_transport_conflated_total: [
      'Messages that were left out for slow clients because a newer one of their key followed.',
      'conflatedCount',
    ],
    webmq_transport_dropped_total: [
      'Messages that were left out for slow clients because they were the oldest.',
      'droppedCount',
    ],
    webmq_transport_received_messages_total: ['Received WebSocket messages.', 'receivedMessageCount'],
    webmq_transport_received_bytes_total: ['Received bytes.', 'receivedByteCount'],
    webmq_transport_delivered_total: ['Frames sent to connections, one per receiver.', 'deliveredCount'],
    webmq_transport_sent_bytes_total: ['Sent bytes.', 'sentByteCount'],
    webmq_transport_partial_bytes: ['Bytes of messages and request heads that are not complete.', 'partialBytes'],
    webmq_transport_thread_restarts_total: [
      'I/O threads that failed and were started again; their connections were closed.',
      'restartedThreadCount',
    ],
    webmq_transport_outbox_bytes: ['Bytes that wait for connections; shared bytes count once.', 'outboxBytes'],
  }),
  {
    name: 'webmq_hook_calls_total',
    type: 'counter',
    help: 'Questions to hooks and webhooks, by hook and outcome: ok, refused, failed.',
    labels: ['hook', 'outcome'],
    read: ({ stats }) =>
      Object.entries(stats.hooks).flatMap(([hook, counts]) =>
        Object.entries(counts).map(([outcome, value]) => ({ labels: { hook, outcome }, value })),
      ),
  },
  ...metricsOf(({ webhook }) => webhook, {
    'webmq_webhook_breaker{status}': [
      '1 for the status of the webhook, 0 for the others: closed (it is asked), open (it fails, and is not asked), half-open; absent without a webhook.',
      ({ breaker }) => flagged(BREAKER_STATES, breaker),
    ],
    webmq_webhook_breaker_opened_total: [
      'How often the webhook failed so much that it was not asked any more.',
      'openCount',
    ],
    webmq_webhook_ignored_total: [
      'Questions to the webhook without an answer that counted as if it had said nothing (`failure` is `open`).',
      'ignoredCount',
    ],
    webmq_webhook_notices_total: ['Notices that the webhook has taken.', 'sentCount'],
    webmq_webhook_dropped_total: [
      'Notices to the webhook that were dropped: it did not take them, or too many waited.',
      'droppedCount',
    ],
    webmq_webhook_waiting: ['Notices that wait for the webhook.', 'waitingCount'],
  }),
  ...metricsOf((stats) => stats, {
    'webmq_connection_limit_total{reason}': [
      'Connections refused because their address, their user or the node has too many, by reason.',
      'connectionLimitCounts',
    ],
    'webmq_publish_rate_limit_total{reason}': [
      'Publishes refused because their connection, or their user, publishes too fast, or the broker is too slow for all of them.',
      'publishRateCounts',
    ],
    webmq_forwarded_malformed_total: [
      'Headers `X-Forwarded-For` of trusted proxies that were ignored because they were malformed.',
      'malformedForwardedCount',
    ],
  }),
  ...metricsOf(({ http }) => http, {
    webmq_http_connections: ['Open plain HTTP connections on the public port.', 'connectionCount'],
    'webmq_http_dropped_total{reason}': [
      'Plain HTTP connections that were ended: evicted, timeout, pipelining; or refused: full. Requests that were refused: rate.',
      'droppedCounts',
      HTTP_DROP_REASONS,
    ],
  }),
  ...metricsOf(({ tls }) => tls, {
    webmq_tls_certificate_expiration_timestamp_seconds: [
      'When the first TLS certificate expires, in seconds since 1970; absent without TLS.',
      ({ firstExpiryMs }) => firstExpiryMs / 1_000,
    ],
    'webmq_tls_reloads_total{status}': [
      'Changes of the certificate files, by status: used, or failed (the old certificate stays).',
      ({ reloadCount, failedReloadCount }) => ({ used: reloadCount, failed: failedReloadCount }),
    ],
  }),
  ...metricsOf(({ audit }) => audit, {
    'webmq_audit_lines_total{outcome}': [
      'Lines of the audit log, by outcome: written, or dropped because the disk was too slow or full; absent without it.',
      ({ writtenCount, droppedCount }) => ({ written: writtenCount, dropped: droppedCount }),
    ],
  }),
]
