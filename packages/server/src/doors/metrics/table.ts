import type { GapReason } from 'webmq-client/protocol'
import type { NodeStatus } from '../../features/observing/health/readiness.js'
import { CLOSE_CODES, ERROR_CODES } from '../../features/observing/measuring/measurements.js'
import {
  flagged,
  type MetricRows,
  type MetricSpec,
  type MetricType,
  metricsFrom,
  namesOf,
  seriesName,
} from '../../features/observing/metrics/spec.js'
import type { LineCounts } from '../../kernel/base/line-writer.js'
import { HOOK_NAMES } from '../../kernel/identity/hook-port.js'
import { FEATURES } from '../../kernel/node/features.js'
import type { ServerStats } from '../../kernel/node/stats.js'
import type { BrokerStatus } from '../../kernel/ports/broker.js'
import { roomHere } from '../options/rules.js'

export interface MetricsSource {
  readonly node: string
  readonly version: string
  readonly broker: string
  readonly status: NodeStatus
  /** Absent while the node does not serve. */
  readonly stats: ServerStats | undefined
}

type Given<Part extends keyof ServerStats> = NonNullable<ServerStats[Part]>

const BREAKER_STATES: readonly Given<'webhook'>['breaker'][] = ['closed', 'open', 'half-open']
const NODE_STATUSES = namesOf<NodeStatus>({ starting: true, ok: true, draining: true, stopped: true })
const ROOM = roomHere()
const STATUSES: readonly BrokerStatus[] = ['up', 'blocked', 'down']

/** All reasons; a missing one does not compile. */
const GAP_REASONS = namesOf<GapReason>({
  'history-expired': true,
  'epoch-changed': true,
  'no-history': true,
  limit: true,
  'slow-consumer': true,
  'broker-lost': true,
  'rules-differ': true,
  refused: true,
  conflated: true,
})
const HTTP_DROP_REASONS = namesOf<keyof ServerStats['http']['droppedCounts']>({
  evicted: true,
  timeout: true,
  pipelining: true,
  full: true,
  rate: true,
})

const HOOK_OUTCOMES = namesOf<keyof ServerStats['hooks']['connect']>({ ok: true, refused: true, failed: true })
const HOOK_SERIES = HOOK_NAMES.flatMap((hook) =>
  HOOK_OUTCOMES.map((outcome) => ({ hook, outcome, series: seriesName('webmq_hook_calls_total', { hook, outcome }) })),
)

/** All metrics of a node. Each request reads them from existing counters, of which none is made by a walk over connections. */
export const METRICS: readonly MetricSpec<MetricsSource>[] = [
  {
    name: 'webmq_build_info',
    type: 'gauge',
    help: 'Always 1; the labels are the version, the name of the node and the broker.',
    labels: ['version', 'node', 'broker'],
    read: ({ version, node, broker }) => [
      { series: seriesName('webmq_build_info', { version, node, broker }), value: 1 },
    ],
  },
  ...metricsFrom((source: MetricsSource) => source, {
    'webmq_node_status{status}': [
      '1 for the status of the node: starting, ok, draining, stopped.',
      ({ status }) => flagged(NODE_STATUSES, status),
    ],
    webmq_memory_limit_bytes: ['Memory of the machine or container.', () => ROOM.memoryBytes],
    webmq_heap_limit_bytes: [
      'The most that the heap of JavaScript may take; beyond it the process ends.',
      () => ROOM.heapBytes,
    ],
  }),
  ...metricsOf((stats) => stats, {
    webmq_connections: 'connectionCount: Open connections.',
    webmq_users: 'userCount: Users with an open connection to this node.',
    webmq_listens: 'listenCount: Listens of all connections: subscriptions.',
    webmq_patterns: 'patternCount: Patterns with a listener on this node.',
    webmq_pattern_bytes: 'patternBytes: Estimated memory of these patterns.',
    webmq_client_messages_total:
      'receivedCount: Protocol messages received from clients: publishes, listens and all others.',
    'webmq_refused_total{code}': [
      'refusedCounts: Messages and requests of the HTTP API answered with an error, by error code.',
      ERROR_CODES,
    ],
    'webmq_refused_upgrades_total{code}': [
      'refusedUpgradeCounts: Upgrades that were refused, by error code.',
      ERROR_CODES,
    ],
    'webmq_token_failures_total{reason}':
      'tokenFailureCounts: Tokens that were refused, by reason; missing: none came in time.',
    'webmq_closes_total{code}': [
      'closeCounts: Closed connections, by close code; 1006: without a close frame.',
      CLOSE_CODES,
    ],
    'webmq_resumes_total{outcome}':
      'resumeCounts: Listens that asked for what they missed, by outcome: recovered, gap, sent-on (to another node).',
    webmq_routed_total: 'routedCount: Messages with a listener on this node, each counted once.',
    webmq_local_dropped_total: 'localDroppedCount: Messages dropped because in-process handlers were too slow.',
    'webmq_gaps_total{reason}': ['gapCounts: Gaps reported to listeners, one per pattern, by reason.', GAP_REASONS],
    'webmq_broker_refused_messages_total{reason}':
      'refusedMessageCounts: Messages from the broker that no listener got, by reason: malformed, too-large, failed.',
  }),
  ...metricsOf(
    ({ timings }) => timings,
    {
      webmq_publish_duration_seconds:
        'publish: From a publish until the broker accepted it; above 10,000 per second one of 256 stands for all.',
      webmq_broker_publish_duration_seconds: 'broker: The part of it that the broker took: its round trip.',
      webmq_delivery_lag_seconds:
        'lag: From a publish until its node passed it to its own listeners; one message at a time is followed.',
      'webmq_hook_duration_seconds{hook}': [
        'hooks: Time that hooks took, by hook; a webhook takes the time of its request.',
        HOOK_NAMES,
      ],
    },
    'histogram',
  ),
  ...metricsOf(({ work }) => work, {
    webmq_paused_connections:
      'pausedCount: Connections that are not being read, because they have caused too much work.',
    webmq_pauses_total:
      'pauseCount: How often reading from a connection was paused, because it has caused too much work.',
    webmq_backlog_bytes: 'backlogBytes: Memory of messages that wait for the turn of their connection.',
  }),
  ...metricsOf(({ streams }) => streams, FEATURES.streams.metrics),
  ...metricsOf(({ outbox }) => outbox, FEATURES.outbox.metrics),
  ...metricsOf(({ broker }) => broker, {
    'webmq_broker_status{status}': [
      '1 for the status of the broker: up, blocked (accepts no messages at present), down.',
      ({ status }) => flagged(STATUSES, status),
    ],
    webmq_broker_accepted_total: 'acceptedCount: Messages of this node that the broker has accepted.',
    webmq_broker_rejected_total: 'rejectedCount: Publishes that the broker refused or that were abandoned.',
    webmq_broker_received_total:
      'receivedCount: Messages that the broker sent to this node, with a listener or without.',
    webmq_broker_surplus_total:
      'surplusCount: Messages that the broker sent to this node without a listener, or twice.',
    webmq_broker_lost_total: 'lostCount: Lost connections to the broker.',
    webmq_broker_behind_total:
      'behindCount: Replays, and requests of Durable Streams, for which this node had not read its log far enough in time.',
    webmq_broker_away_seconds_total: [
      'Time during which the broker was not up, since it first was.',
      ({ awayMs }) => awayMs / 1_000,
    ],
    webmq_broker_last_away_seconds: ['Duration of the last broker outage.', ({ lastAwayMs }) => lastAwayMs / 1_000],
    webmq_broker_pending_messages: 'pendingCount: Publishes that wait for the broker.',
    webmq_broker_pending_bytes: 'pendingBytes: Bytes of publishes that wait for the broker.',
    webmq_retained_dropped_total: [
      'Messages not retained, because other programs published far beyond the limits.',
      ({ retained }) => retained?.droppedCount ?? 0,
    ],
  }),
  ...metricsOf(({ broker }) => broker.log, {
    webmq_log_messages: "messageCount: Messages in this node's copy of the log.",
    webmq_log_bytes: 'byteCount: Bytes of payload of these messages.',
    webmq_log_oldest_timestamp_seconds: [
      'When the oldest of these messages was logged, Unix time; 0 for an empty log.',
      ({ oldestTimeMs }) => oldestTimeMs / 1_000,
    ],
    webmq_log_lag_seconds: [
      'Age of the newest of these messages when this node read it, by the clocks of broker and node.',
      ({ lagMs }) => lagMs / 1_000,
    ],
    webmq_log_held_ratio:
      'heldShare: Part of the messages and of the time of a rule of `history` that the full log holds, by the worst rule; 1: all.',
  }),
  ...metricsOf(({ broker }) => broker.retained, {
    webmq_retained_keys: 'keyCount: Keys whose last message is retained.',
    webmq_retained_bytes:
      'byteCount: Bytes of these keys and their payloads; `retainMaxKeys` and `retainMaxBytes` limit both.',
  }),
  ...metricsOf(({ presence }) => presence, FEATURES.presence.metrics),
  ...metricsOf(({ queueGroups }) => queueGroups, FEATURES.queueGroups.metrics),
  ...metricsOf(({ cluster }) => cluster, FEATURES.cluster.metrics),
  ...metricsOf(({ transport }) => transport, {
    webmq_transport_accepted_total: 'acceptedCount: Accepted connections.',
    webmq_transport_refused_total: 'refusedCount: Refused upgrades.',
    webmq_connections_limit:
      'connectionLimit: The most connections of the node: `maxConnections`, or what its descriptor limit allows.',
    webmq_transport_proxy_header_refused_total:
      'proxyHeaderRefusedCount: Connections of trusted proxies closed for want of a valid PROXY header.',
    webmq_transport_closed_total: 'closedCount: Ended connections.',
    webmq_transport_slow_consumers_total:
      'slowConsumerCount: Connections that were closed because the client read too slowly.',
    webmq_transport_conflated_total:
      'conflatedCount: Messages left out for slow clients because a newer one of their key followed.',
    webmq_transport_dropped_total: 'droppedCount: Messages left out for slow clients because they were the oldest.',
    webmq_transport_received_messages_total: 'receivedMessageCount: Received WebSocket messages.',
    webmq_transport_received_bytes_total: 'receivedByteCount: Received bytes.',
    webmq_transport_delivered_total: 'deliveredCount: Frames sent to connections, one per receiver.',
    webmq_transport_sent_bytes_total: 'sentByteCount: Sent bytes.',
    webmq_transport_partial_bytes: 'partialBytes: Bytes of messages and request heads that are not complete.',
    webmq_transport_thread_restarts_total:
      'restartedThreadCount: I/O threads that failed and were started again; their connections were closed.',
    webmq_transport_outbox_bytes: 'outboxBytes: Bytes that wait for connections; shared bytes count once.',
  }),
  {
    name: 'webmq_hook_calls_total',
    type: 'counter',
    help: 'Questions to hooks and webhooks, by hook and outcome: ok, refused, failed.',
    labels: ['hook', 'outcome'],
    read: ({ stats }) =>
      stats === undefined
        ? []
        : HOOK_SERIES.map(({ hook, outcome, series }) => ({ series, value: stats.hooks[hook][outcome] })),
  },
  ...metricsOf(({ webhook }) => webhook, {
    'webmq_webhook_breaker{status}': [
      '1 for the status of the webhook: closed (it is asked), open (it fails, and is not asked), half-open; absent without one.',
      ({ breaker }) => flagged(BREAKER_STATES, breaker),
    ],
    webmq_webhook_breaker_opened_total:
      'openCount: How often the webhook failed so much that it was not asked any more.',
    webmq_webhook_ignored_total:
      'ignoredCount: Unanswered questions to the webhook, taken as no opinion (`failure` is `open`).',
    webmq_webhook_notices_total: 'sentCount: Notices that the webhook has taken.',
    webmq_webhook_dropped_total:
      'droppedCount: Notices to the webhook that were dropped: it did not take them, or too many waited.',
    webmq_webhook_waiting: 'waitingCount: Notices that wait for the webhook.',
  }),
  ...metricsOf(({ occupancy }) => occupancy, FEATURES.occupancy.metrics),
  ...metricsOf((stats) => stats, {
    'webmq_connection_limit_total{reason}':
      'connectionLimitCounts: Connections refused because their address, their user or the node has too many, by reason.',
    'webmq_publish_rate_limit_total{reason}':
      'publishRateCounts: Publishes refused because their connection or user is too fast, or the broker too slow, by reason.',
    webmq_publish_waiting_messages:
      'waitingPublishCount: Publishes that wait, or are behind one that waits, because the broker is too slow.',
    webmq_publish_window_messages:
      'publishWindowCount: Most publishes that the broker is given at a time, because it is slow; 0 while it is quick.',
    webmq_forwarded_malformed_total:
      'malformedForwardedCount: Malformed headers `X-Forwarded-For` of trusted proxies, which were ignored.',
  }),
  ...metricsOf(({ http }) => http, {
    webmq_http_connections: 'connectionCount: Open plain HTTP connections on the public port.',
    'webmq_http_dropped_total{reason}': [
      'droppedCounts: Plain HTTP connections ended (evicted, timeout, pipelining) or refused (full), and requests refused (rate).',
      HTTP_DROP_REASONS,
    ],
  }),
  ...metricsOf(({ tls }) => tls, {
    webmq_tls_certificate_expiration_timestamp_seconds: [
      'When the first TLS certificate expires, Unix time; absent without TLS.',
      ({ firstExpiryMs }) => firstExpiryMs / 1_000,
    ],
    'webmq_tls_reloads_total{status}': [
      'Changes of the certificate files, by status: used, or failed (the old certificate stays).',
      ({ reloadCount, failedReloadCount }) => ({ used: reloadCount, failed: failedReloadCount }),
    ],
    webmq_tls_certificate_refused: [
      '1 while the changed certificate files cannot be used, and the old certificate stays.',
      ({ isRefused }) => Number(isRefused),
    ],
  }),
  ...metricsOf(({ audit }) => audit, {
    'webmq_audit_lines_total{outcome}': [
      'Lines of the audit log, by outcome: written, or dropped (disk slow, full or gone); absent without it.',
      outcomesOf,
    ],
    webmq_audit_lines_waiting_bytes: 'waitingBytes: Lines of the audit log that are not written yet.',
  }),
  ...metricsOf(({ logLines }) => logLines, {
    'webmq_log_lines_total{outcome}': [
      "Lines of the node's own log, by outcome: written, or dropped (disk full, or nobody reads it); absent with a logger of yours.",
      outcomesOf,
    ],
    webmq_log_lines_waiting_bytes: "waitingBytes: Lines of the node's own log that are not written yet.",
  }),
]

function outcomesOf({ writtenCount, droppedCount }: LineCounts): Record<'written' | 'dropped', number> {
  return { written: writtenCount, dropped: droppedCount }
}

/** Metrics of one part of the stats, as {@link metricsFrom}. */
function metricsOf<Part extends object>(
  partOf: (stats: ServerStats) => Part | undefined,
  rows: MetricRows<Part>,
  type?: MetricType,
): readonly MetricSpec<MetricsSource>[] {
  return metricsFrom(({ stats }: MetricsSource) => stats && partOf(stats), rows, type)
}
