import { MESSAGE_OVERHEAD_BYTES } from 'webmq-client/protocol'
import type { ResolvedOptions } from '../options/options.js'
import type { ConfiguredLimits } from '../session/effective-limits.js'

/** Share of the pending bytes that one connection may use. */
const PENDING_SHARE = 1 / 8

/** Limits of connections without a token, or whose token says nothing else. */
export function configuredLimitsOf(options: ResolvedOptions): ConfiguredLimits {
  const maxMessageBytes = options.maxPayloadBytes + MESSAGE_OVERHEAD_BYTES
  return {
    maxPayloadBytes: options.maxPayloadBytes,
    maxConnectionsPerUser: options.maxConnectionsPerUser,
    maxListensPerUser: options.maxListensPerUser,
    maxPublishesPerSecond: options.maxPublishesPerSecond,
    maxPublishBytesPerSecond: options.maxPublishBytesPerSecond,
    maxPublishesPerSecondPerUser: options.maxPublishesPerSecondPerUser,
    maxPublishBytesPerSecondPerUser: options.maxPublishBytesPerSecondPerUser,
    publishBurstMs: options.publishBurstMs,
    maxListensPerConnection: options.maxListensPerConnection,
    maxSearchListensPerConnection: options.maxSearchListensPerConnection,
    maxRequestsPerConnection: options.maxRequestsPerConnection,
    maxWords: options.maxWords,
    maxHashes: options.maxHashes,
    maxPendingPublishBytes: Math.max(Math.floor(options.brokerMaxPendingBytes * PENDING_SHARE), maxMessageBytes),
    streamLeaseMs: options.streamLeaseMs,
    maxStreamBytes: Math.min(options.maxStreamBytes, options.maxOutboxBytes / 2),
    authTimeoutMs: options.authTimeoutMs,
    workPerSecond: options.workPerSecond,
    workBurst: options.workBurst,
  }
}
