import type { ErrorCode, GapReason } from 'webmq-client/protocol'
import type { HttpStats } from '../../doors/http/connections.js'
import type { CertificateStats } from '../../features/certificates/store.js'
import type { WebhookStats } from '../../features/hooks/webhooks/webhook.js'
import type { MeasurementStats } from '../../features/observing/measuring/measurements.js'
import type { LineCounts } from '../base/line-writer.js'
import type { HookCounts } from '../identity/hook-port.js'
import type { TokenFailure } from '../identity/token-failure.js'
import type { BrokerStatus, RefusalReason } from '../ports/broker.js'
import type { BrokerStats } from '../ports/broker-stats.js'
import type { TransportStats } from '../ports/transport.js'
import type { WorkStats } from '../ports/work-meter.js'
import type { StatsOf } from './features.js'

export type { CertificateStats, WebhookStats }
export type OutboxStats = StatsOf<'outbox'>
export type StreamStats = StatsOf<'streams'>

/** Counters of a node's broker, its status and its downtime. */
export interface ServerBrokerStats extends BrokerStats {
  readonly status: BrokerStatus
  /** Time since the start during which the broker was not `up`, including a present outage. */
  readonly awayMs: number
  /** Duration of the last completed outage; 0 without one. */
  readonly lastAwayMs: number
}

/** Counters since the start; gauges at the time of the call. */
export interface ServerStats extends MeasurementStats {
  readonly connectionCount: number
  /** Users with an open connection to this node. */
  readonly userCount: number
  /** Listens of all connections. */
  readonly listenCount: number
  /** Patterns that clients or handlers of this node listen to. */
  readonly patternCount: number
  /** Estimated memory of these patterns. */
  readonly patternBytes: number
  /** Protocol messages received from clients. */
  readonly receivedCount: number
  /** Messages with a listener on this node, each counted once. */
  readonly routedCount: number
  /** Messages dropped because in-process handlers were too slow. */
  readonly localDroppedCount: number
  /** Protocol messages and requests of the HTTP API that were answered with an error, by error code. */
  readonly refusedCounts: Readonly<Partial<Record<ErrorCode, number>>>
  /** Refused tokens, by reason. */
  readonly tokenFailureCounts: Readonly<Record<TokenFailure | 'missing', number>>
  /** Gaps reported to listeners, one per pattern, by reason. */
  readonly gapCounts: Readonly<Partial<Record<GapReason, number>>>
  /** Connections refused with `E_CONNECTION_LIMIT`: those of an address, of a user, and of a node that is full. */
  readonly connectionLimitCounts: { readonly address: number; readonly user: number; readonly node: number }
  /** Publishes refused because their connection, or their user, publishes too fast. */
  readonly publishRateCounts: { readonly connection: number; readonly user: number; readonly broker: number }
  /** Publishes that wait because the broker is too slow, those behind them included. */
  readonly waitingPublishCount: number
  /** Most publishes that the broker is given at a time, because it is slow; 0 while it is quick. */
  readonly publishWindowCount: number
  /** `X-Forwarded-For` headers of trusted proxies that were ignored because they were malformed. */
  readonly malformedForwardedCount: number
  /** Messages of the broker that no listener got, by reason. */
  readonly refusedMessageCounts: Readonly<Record<RefusalReason, number>>
  readonly presence: StatsOf<'presence'>
  /** Present when the webhook is told of occupied and vacated patterns. */
  readonly occupancy?: StatsOf<'occupancy'>
  readonly queueGroups: StatsOf<'queueGroups'>
  /** Messages between nodes about connections and revoked tokens. */
  readonly cluster: StatsOf<'cluster'>
  readonly work: WorkStats
  readonly streams: StreamStats
  /** Present with a database outbox. */
  readonly outbox?: OutboxStats
  readonly broker: ServerBrokerStats
  readonly transport: TransportStats
  /** Plain HTTP connections on the public port. */
  readonly http: HttpStats
  /** Present with an audit log. */
  readonly audit?: Readonly<LineCounts>
  /** Lines of the log of the server. Absent with a logger of the program. */
  readonly logLines?: Readonly<LineCounts>
  /** Questions to hooks and webhooks since the start, by hook and outcome. */
  readonly hooks: HookCounts
  /** Present with a webhook. */
  readonly webhook?: WebhookStats
  /** Present with TLS. */
  readonly tls?: CertificateStats
}
