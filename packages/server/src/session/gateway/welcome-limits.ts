import { MAX_KEY_BYTES, type Welcome } from 'webmq-client/protocol'
import type { SessionLimits } from '../effective-limits.js'

/** The limits that `welcome` tells a client, without those of message ids. */
export function welcomeLimits(limits: SessionLimits): Omit<Welcome['limits'], 'dedupeWindowMs' | 'dedupeMaxIds'> {
  const { ofConnection, ofUser } = limits.publishing ?? {}
  // Members that are undefined are left out.
  return {
    maxPayloadBytes: limits.maxPayloadBytes,
    maxKeyBytes: MAX_KEY_BYTES,
    maxWords: limits.maxWords,
    maxHashes: limits.maxHashes,
    maxListensPerConnection: limits.maxListensPerConnection,
    maxSearchListensPerConnection: limits.maxSearchListensPerConnection,
    maxRequestsPerConnection: limits.maxRequestsPerConnection,
    maxListensPerUser: limits.maxListensPerUser,
    maxPublishesPerSecond: ofConnection?.perSecond,
    maxPublishBytesPerSecond: ofConnection?.bytesPerSecond,
    maxPublishesPerSecondPerUser: ofUser?.perSecond,
    maxPublishBytesPerSecondPerUser: ofUser?.bytesPerSecond,
    publishBurstMs: ofConnection?.burstMs,
    maxPendingPublishBytes: limits.maxPendingPublishBytes,
    streamLeaseMs: limits.streamLeaseMs,
    maxStreamBytes: limits.maxStreamBytes,
    workPerSecond: limits.workPerSecond,
    workBurst: limits.workBurst,
  }
}
