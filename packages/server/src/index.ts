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
} from './broker.js'
export type { BrokerChange } from './broker-watch.js'
export { createServer } from './create-server.js'
export type { Grant, Identity, JwtOptions } from './identity/index.js'
export type { MetricsAudience } from './inspection.js'
export type { HistoryMessage, HistoryQuery, HistoryResult } from './local-history.js'
export type { LocalGap, LocalHandler, LocalMessage } from './local-listeners.js'
export type { Logger, LogLevel } from './logger.js'
export type { ServerOptions } from './options.js'
export type * from './transport.js'
export type {
  BatchMessage,
  LocalListenOptions,
  LocalSubscription,
  PublishOptions,
  PublishResult,
  ServerAddress,
  ServerBrokerStats,
  ServerEvents,
  ServerStats,
  WebMQServer,
} from './webmq-server.js'
