import type { NativeEngine } from 'webmq-native'
import type { TransportStats } from '../../ports/transport.js'

export const NO_STATS: TransportStats = {
  connections: 0,
  acceptedCount: 0,
  refusedCount: 0,
  fullCount: 0,
  connectionLimit: 0,
  proxyHeaderRefusedCount: 0,
  closedCount: 0,
  slowConsumerCount: 0,
  conflatedCount: 0,
  droppedCount: 0,
  receivedMessageCount: 0,
  answeredMessageCount: 0,
  receivedByteCount: 0,
  deliveredCount: 0,
  sentByteCount: 0,
  partialBytes: 0,
  restartedThreadCount: 0,
  outboxBytes: 0,
}

export function statsOf(engine: NativeEngine): TransportStats {
  const { restartCount, ...stats } = engine.stats()
  return { ...stats, restartedThreadCount: restartCount }
}
