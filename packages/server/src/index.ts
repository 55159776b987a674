export { createServer } from './create-server.js'
export type { HistoryMessage, HistoryQuery, HistoryResult } from './doors/in-process/read-history.js'
export type * from './doors/in-process/webmq-server.js'
export type * from './doors/options/hooks.js'
export type { MetricsAudience, OutboxOptions, ServerOptions } from './doors/options/server-options.js'
export type { WebhookFailure, WebhookOptions } from './doors/options/webhook.js'
export type { BrokerChange } from './features/observing/health/broker-watch.js'
export type { Logger, LogLevel } from './kernel/base/logger.js'
export type { Claims, Grant, Identity, JwtOptions } from './kernel/identity/index.js'
export type {
  CertificateStats,
  OutboxStats,
  ServerBrokerStats,
  ServerStats,
  StreamStats,
  WebhookStats,
} from './kernel/node/stats.js'
export type {
  Accepted,
  Broker,
  BrokerCapabilities,
  BrokerSink,
  BrokerStatus,
  InboundMessage,
  OutboundMessage,
  Position,
  ReadRange,
  ReadResult,
} from './kernel/ports/broker.js'
export type { BrokerStats } from './kernel/ports/broker-stats.js'
export type * from './kernel/ports/transport.js'
export type * from './kernel/ports/transport-options.js'
export type { BatchMessage, PublishOptions, PublishResult } from './kernel/publishing/publish-options.js'
export type {
  LocalGap,
  LocalHandler,
  LocalListenOptions,
  LocalMessage,
  LocalSubscription,
} from './kernel/routing/local-listeners.js'
