import type { GapReason } from 'webmq-client/protocol'
import type { WebhookStats } from '../hooks/index.js'
import { CLOSE_CODES, ERROR_CODES } from '../observing/measuring/measurements.js'
import type { BrokerStatus } from '../ports/broker.js'
import { counter, gauge, labelled, type MetricSpec, namesOf, optional } from './metric-spec.js'
import type { HttpDropReason, ServerStats } from './stats.js'
import { TIMING_METRICS } from './timing-metrics.js'

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
const HTTP_DROP_REASONS = namesOf<HttpDropReason>({ evicted: true, timeout: true, pipelining: true, full: true })

/** All metrics of a node. Each request reads them from existing counters. */
export const METRICS: readonly MetricSpec[] = [
  {
    name: 'webmq_build_info',
    type: 'gauge',
    help: 'Always 1; the labels are the version, the name of the node and the broker.',
    labels: ['version', 'node', 'broker'],
    read: ({ version, node, broker }) => [{ labels: { version, node, broker }, value: 1 }],
  },
  gauge('webmq_connections', 'Open connections.', ({ connectionCount }) => connectionCount),
  gauge('webmq_users', 'Users with an open connection to this node.', ({ userCount }) => userCount),
  gauge('webmq_listens', 'Listens of all connections: subscriptions.', ({ listenCount }) => listenCount),
  gauge('webmq_patterns', 'Patterns with a listener on this node.', ({ patternCount }) => patternCount),
  gauge('webmq_pattern_bytes', 'Estimated memory of these patterns.', ({ patternBytes }) => patternBytes),
  counter(
    'webmq_client_messages_total',
    'Protocol messages received from clients: publishes, listens and all others.',
    ({ receivedCount }) => receivedCount,
  ),
  labelled(
    'webmq_refused_total',
    'Protocol messages and requests of the HTTP API that were answered with an error, by error code.',
    'code',
    ({ refusedCounts }) => refusedCounts,
    ERROR_CODES,
  ),
  labelled(
    'webmq_refused_upgrades_total',
    'Upgrades that were refused, by error code.',
    'code',
    ({ refusedUpgradeCounts }) => refusedUpgradeCounts,
    ERROR_CODES,
  ),
  labelled(
    'webmq_token_failures_total',
    'Tokens that were refused, by reason; missing: none came in time.',
    'reason',
    ({ tokenFailureCounts }) => tokenFailureCounts,
  ),
  labelled(
    'webmq_closes_total',
    'Closed connections, by close code; 1006: without a close frame.',
    'code',
    ({ closeCounts }) => closeCounts,
    CLOSE_CODES,
  ),
  labelled(
    'webmq_resumes_total',
    'Listens that asked for what they missed, by outcome: recovered, gap, sent-on (to another node).',
    'outcome',
    ({ resumeCounts }) => resumeCounts,
  ),
  ...TIMING_METRICS,
  gauge(
    'webmq_paused_connections',
    'Connections that are not being read, because they have caused too much work.',
    ({ work }) => work.pausedCount,
  ),
  counter(
    'webmq_pauses_total',
    'How often reading from a connection was paused, because it has caused too much work.',
    ({ work }) => work.pauseCount,
  ),
  gauge(
    'webmq_backlog_bytes',
    'Memory of messages that wait for the turn of their connection.',
    ({ work }) => work.backlogBytes,
  ),
  counter(
    'webmq_routed_total',
    'Messages with a listener on this node, each counted once.',
    ({ routedCount }) => routedCount,
  ),
  counter(
    'webmq_local_dropped_total',
    'Messages dropped because in-process handlers were too slow.',
    ({ localDroppedCount }) => localDroppedCount,
  ),
  labelled(
    'webmq_gaps_total',
    'Gaps reported to listeners, one per pattern, by reason.',
    'reason',
    ({ gapCounts }) => gapCounts,
    GAP_REASONS,
  ),
  {
    name: 'webmq_broker_status',
    type: 'gauge',
    help: '1 for the status of the broker, 0 for the others: up, blocked (accepts no messages at present), down.',
    labels: ['status'],
    read: ({ stats }) =>
      STATUSES.map((status) => ({ labels: { status }, value: stats.broker.status === status ? 1 : 0 })),
  },
  counter(
    'webmq_broker_accepted_total',
    'Messages of this node that the broker has accepted.',
    ({ broker }) => broker.acceptedCount,
  ),
  counter(
    'webmq_broker_rejected_total',
    'Publishes that the broker refused or that were abandoned.',
    ({ broker }) => broker.rejectedCount,
  ),
  counter(
    'webmq_broker_received_total',
    'Messages that the broker sent to this node, with a listener or without.',
    ({ broker }) => broker.receivedCount,
  ),
  counter(
    'webmq_broker_surplus_total',
    'Messages that the broker sent to this node without a listener, or twice.',
    ({ broker }) => broker.surplusCount,
  ),
  labelled(
    'webmq_broker_refused_messages_total',
    'Messages from the broker that no listener got, by reason: malformed, too-large (above maxPayloadBytes), failed.',
    'reason',
    ({ refusedMessageCounts }) => refusedMessageCounts,
  ),
  counter('webmq_broker_lost_total', 'Lost connections to the broker.', ({ broker }) => broker.lostCount),
  counter(
    'webmq_broker_behind_total',
    'Replays refused because this node had not read the log that far; the clients went to other nodes.',
    ({ broker }) => broker.behindCount,
  ),
  counter(
    'webmq_broker_away_seconds_total',
    'Time during which the broker was not up, since it first was.',
    ({ broker }) => broker.awayMs / 1_000,
  ),
  gauge(
    'webmq_broker_last_away_seconds',
    'Duration of the last broker outage.',
    ({ broker }) => broker.lastAwayMs / 1_000,
  ),
  gauge('webmq_broker_pending_messages', 'Publishes that wait for the broker.', ({ broker }) => broker.pendingCount),
  gauge(
    'webmq_broker_pending_bytes',
    'Bytes of publishes that wait for the broker.',
    ({ broker }) => broker.pendingBytes,
  ),
  optional('webmq_log_messages', "Messages in this node's copy of the log.", ({ broker }) => broker.log?.messageCount),
  optional('webmq_log_bytes', 'Bytes of payload of these messages.', ({ broker }) => broker.log?.byteCount),
  optional(
    'webmq_log_oldest_timestamp_seconds',
    'When the oldest of these messages was logged, in seconds since 1970; 0 for an empty log.',
    ({ broker }) => broker.log && broker.log.oldestTimeMs / 1_000,
  ),
  optional(
    'webmq_log_lag_seconds',
    'Age of the newest of these messages when this node read it, by the clocks of broker and node.',
    ({ broker }) => broker.log && broker.log.lagMs / 1_000,
  ),
  optional('webmq_retained_keys', 'Keys whose last message is retained.', ({ broker }) => broker.retained?.keyCount),
  optional(
    'webmq_retained_bytes',
    'Bytes of these keys and their payloads; `retainMaxKeys` and `retainMaxBytes` limit both.',
    ({ broker }) => broker.retained?.byteCount,
  ),
  counter(
    'webmq_retained_dropped_total',
    'Messages of the log that were not retained, because other programs published far more keys or bytes than the limits.',
    ({ broker }) => broker.retained?.droppedCount ?? 0,
  ),
  gauge(
    'webmq_presence_members',
    'Presence members of all nodes that this node knows.',
    ({ presence }) => presence.memberCount,
  ),
  gauge(
    'webmq_presence_own_members',
    'Presence members of connections of this node.',
    ({ presence }) => presence.ownMemberCount,
  ),
  gauge(
    'webmq_presence_watched_keys',
    'Keys whose members are watched by connections of this node.',
    ({ presence }) => presence.watchedKeyCount,
  ),
  gauge('webmq_presence_peers', 'Other nodes that take part in presence.', ({ presence }) => presence.peerCount),
  counter(
    'webmq_presence_dropped_total',
    'Presence messages that could not be read, and members of other nodes above the limit.',
    ({ presence }) => presence.droppedCount,
  ),
  gauge(
    'webmq_queue_groups',
    'Queue groups of all nodes that this node knows, those of responders included.',
    ({ queueGroups }) => queueGroups.groupCount,
  ),
  gauge(
    'webmq_queue_group_members',
    'Members of queue groups on this node.',
    ({ queueGroups }) => queueGroups.memberCount,
  ),
  gauge(
    'webmq_queue_group_pending',
    'Messages that wait for the answer of the node of a member.',
    ({ queueGroups }) => queueGroups.pendingCount,
  ),
  gauge(
    'webmq_requests_pending',
    'Requests of this node that wait for a reply.',
    ({ queueGroups }) => queueGroups.requestCount,
  ),
  counter(
    'webmq_queue_group_handed_total',
    'Messages and requests that members of this node have got.',
    ({ queueGroups }) => queueGroups.handedCount,
  ),
  counter(
    'webmq_queue_group_missed_total',
    'Messages that no member got: the queue group had none any more, or a hook failed for them on this node.',
    ({ queueGroups }) => queueGroups.missedCount,
  ),
  counter(
    'webmq_queue_group_dropped_total',
    'Messages about queue groups that could not be read, and members of other nodes above the limit.',
    ({ queueGroups }) => queueGroups.droppedCount,
  ),
  gauge('webmq_cluster_peers', 'Other nodes that this node has heard of.', ({ cluster }) => cluster.peerCount),
  gauge(
    'webmq_cluster_revocations',
    'Revoked tokens and users that this node keeps until the tokens have expired.',
    ({ cluster }) => cluster.revocationCount,
  ),
  counter(
    'webmq_cluster_dropped_total',
    'Messages about these that could not be read or came from too many nodes, and revocations above the limit.',
    ({ cluster }) => cluster.droppedCount,
  ),
  counter('webmq_transport_accepted_total', 'Accepted connections.', ({ transport }) => transport.acceptedCount),
  counter('webmq_transport_refused_total', 'Refused upgrades.', ({ transport }) => transport.refusedCount),
  counter(
    'webmq_transport_proxy_header_refused_total',
    'Connections of trusted proxies that were closed because they did not begin with a valid PROXY header.',
    ({ transport }) => transport.proxyHeaderRefusedCount,
  ),
  counter('webmq_transport_closed_total', 'Ended connections.', ({ transport }) => transport.closedCount),
  counter(
    'webmq_transport_slow_consumers_total',
    'Connections that were closed because the client read too slowly.',
    ({ transport }) => transport.slowConsumerCount,
  ),
  counter(
    'webmq_transport_conflated_total',
    'Messages that were left out for slow clients because a newer one of their key followed.',
    ({ transport }) => transport.conflatedCount,
  ),
  counter(
    'webmq_transport_dropped_total',
    'Messages that were left out for slow clients because they were the oldest.',
    ({ transport }) => transport.droppedCount,
  ),
  counter(
    'webmq_transport_received_messages_total',
    'Received WebSocket messages.',
    ({ transport }) => transport.receivedMessageCount,
  ),
  counter('webmq_transport_received_bytes_total', 'Received bytes.', ({ transport }) => transport.receivedByteCount),
  counter(
    'webmq_transport_delivered_total',
    'Frames sent to connections, one per receiver.',
    ({ transport }) => transport.deliveredCount,
  ),
  counter('webmq_transport_sent_bytes_total', 'Sent bytes.', ({ transport }) => transport.sentByteCount),
  gauge(
    'webmq_transport_partial_bytes',
    'Bytes of messages and request heads that are not complete.',
    ({ transport }) => transport.partialBytes,
  ),
  counter(
    'webmq_transport_thread_restarts_total',
    'I/O threads that failed and were started again; their connections were closed.',
    ({ transport }) => transport.restartedThreadCount,
  ),
  gauge(
    'webmq_transport_outbox_bytes',
    'Bytes that wait for connections; shared bytes count once.',
    ({ transport }) => transport.outboxBytes,
  ),
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
  {
    name: 'webmq_webhook_breaker',
    type: 'gauge',
    help: '1 for the status of the webhook, 0 for the others: closed (it is asked), open (it fails, and is not asked), half-open; absent without a webhook.',
    labels: ['status'],
    read: ({ stats: { webhook } }) =>
      webhook === undefined
        ? []
        : BREAKER_STATES.map((status) => ({ labels: { status }, value: webhook.breaker === status ? 1 : 0 })),
  },
  webhookCounter(
    'webmq_webhook_breaker_opened_total',
    'How often the webhook failed so much that it was not asked any more.',
    ({ openCount }) => openCount,
  ),
  webhookCounter(
    'webmq_webhook_ignored_total',
    'Questions to the webhook without an answer that counted as if it had said nothing (`failure` is `open`).',
    ({ ignoredCount }) => ignoredCount,
  ),
  webhookCounter('webmq_webhook_notices_total', 'Notices that the webhook has taken.', ({ sentCount }) => sentCount),
  webhookCounter(
    'webmq_webhook_dropped_total',
    'Notices to the webhook that were dropped: it did not take them, or too many waited.',
    ({ droppedCount }) => droppedCount,
  ),
  {
    ...webhookCounter(
      'webmq_webhook_waiting',
      'Notices that wait for the webhook.',
      ({ waitingCount }) => waitingCount,
    ),
    type: 'gauge',
  },
  labelled(
    'webmq_connection_limit_total',
    'Connections refused because their address or their user has too many, by reason.',
    'reason',
    ({ connectionLimitCounts }) => connectionLimitCounts,
  ),
  labelled(
    'webmq_publish_rate_limit_total',
    'Publishes refused because their connection, or their user, publishes too fast.',
    'reason',
    ({ publishRateCounts }) => publishRateCounts,
  ),
  counter(
    'webmq_forwarded_malformed_total',
    'Headers `X-Forwarded-For` of trusted proxies that were ignored because they were malformed.',
    ({ malformedForwardedCount }) => malformedForwardedCount,
  ),
  gauge(
    'webmq_http_connections',
    'Open plain HTTP connections on the public port.',
    ({ http }) => http.connectionCount,
  ),
  labelled(
    'webmq_http_dropped_total',
    'Plain HTTP connections that were ended: evicted, timeout, pipelining; or refused: full.',
    'reason',
    ({ http }) => http.droppedCounts,
    HTTP_DROP_REASONS,
  ),
  {
    name: 'webmq_tls_certificate_expiration_timestamp_seconds',
    type: 'gauge',
    help: 'When the first TLS certificate expires, in seconds since 1970; absent without TLS.',
    labels: [],
    read: ({ stats }) => (stats.tls === undefined ? [] : [{ value: stats.tls.firstExpiryMs / 1_000 }]),
  },
  labelled(
    'webmq_tls_reloads_total',
    'Changes of the certificate files, by status: used, or failed (the old certificate stays).',
    'status',
    ({ tls }) => (tls === undefined ? {} : { used: tls.reloadCount, failed: tls.failedReloadCount }),
  ),
  {
    name: 'webmq_audit_lines_total',
    type: 'counter',
    help: 'Lines of the audit log, by outcome: written, or dropped because the disk was too slow or full; absent without it.',
    labels: ['outcome'],
    read: ({ stats: { audit } }) =>
      audit === undefined
        ? []
        : [
            { labels: { outcome: 'written' }, value: audit.writtenCount },
            { labels: { outcome: 'dropped' }, value: audit.droppedCount },
          ],
  },
]

/** Absent without a webhook. */
function webhookCounter(name: string, help: string, read: (stats: WebhookStats) => number): MetricSpec {
  const samples = ({ webhook }: ServerStats) => (webhook === undefined ? [] : [{ value: read(webhook) }])
  return { name, type: 'counter', help, labels: [], read: ({ stats }) => samples(stats) }
}
