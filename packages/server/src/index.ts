export type { Logger, LogLevel } from './base/logger.js'
export { createServer } from './create-server.js'
export type * from './hooks/hooks.js'
export type { WebhookFailure, WebhookOptions, WebhookStats } from './hooks/index.js'
export type { CertificateStats } from './identity/certificates/store.js'
export type { Claims, Grant, Identity, JwtOptions } from './identity/index.js'
export type { ServerBrokerStats, ServerStats } from './node/stats.js'
export type * from './node/webmq-server.js'
export type { BrokerChange } from './observing/health/broker-watch.js'
export type { MetricsAudience, ServerOptions } from './options/server-options.js'
export type { OutboxOptions, OutboxStats } from './outbox/outbox.js'
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
} from './ports/broker.js'
export type { BrokerStats } from './ports/broker-stats.js'
export type * from './ports/transport.js'
export type * from './ports/transport-options.js'
export type { BatchMessage, PublishOptions, PublishResult } from './publishing/publish-options.js'
export type { LocalGap, LocalHandler, LocalMessage } from './routing/in-process/listeners.js'
export type { HistoryMessage, HistoryQuery, HistoryResult } from './routing/in-process/read-history.js'
export type { LocalListenOptions, LocalSubscription } from './routing/in-process/subscription.js'
export type { StreamStats } from './streams/streams.js'
export type { StreamWriter } from './streams/writer.js'
