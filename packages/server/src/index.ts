export type {
  BatchMessage,
  LocalListenOptions,
  LocalSubscription,
  PublishOptions,
  PublishResult,
  ReloadResult,
  ServerAddress,
  ServerBrokerStats,
  ServerEvents,
  ServerStats,
  WebMQServer,
} from './api.js'
export type { CertificateStats } from './certificates/store.js'
export { createServer } from './create-server.js'
export type { BrokerChange } from './health/broker-watch.js'
export type {
  ConnectAnswer,
  ConnectRequest,
  DeliverAnswer,
  DeliverRequest,
  DisconnectNotice,
  HookAnswer,
  HookClient,
  HookMessage,
  Hooks,
  ListenRequest,
  PresenceAnswer,
  PresenceRequest,
  PublishAnswer,
  PublishRequest,
  Refusal,
  WebhookFailure,
  WebhookOptions,
  WebhookStats,
} from './hooks/index.js'
export type { Claims, Grant, Identity, JwtOptions } from './identity/index.js'
export type { LocalGap, LocalHandler, LocalMessage } from './in-process/listeners.js'
export type { HistoryMessage, HistoryQuery, HistoryResult } from './in-process/read-history.js'
export type { Logger, LogLevel } from './logger.js'
export type { MetricsAudience, ServerOptions } from './options/options.js'
export type {
  Accepted,
  Broker,
  BrokerCapabilities,
  BrokerSink,
  BrokerStats,
  BrokerStatus,
  InboundMessage,
  OutboundMessage,
  Position,
  ReadRange,
  ReadResult,
} from './ports/broker.js'
export type * from './ports/transport.js'
