import type { BrokerStats, BrokerStatus, LogStats, RetainedStats } from '../../ports/broker.js'

/** Statistics of several brokers as those of one. */
export function sumOf(all: readonly BrokerStats[]): BrokerStats {
  const sum = (count: (stats: BrokerStats) => number) => all.reduce((total, stats) => total + count(stats), 0)
  const log = all.map(({ log }) => log).filter((log) => log !== undefined)
  const retained = all.map(({ retained }) => retained).filter((retained) => retained !== undefined)
  return {
    acceptedCount: sum(({ acceptedCount }) => acceptedCount),
    rejectedCount: sum(({ rejectedCount }) => rejectedCount),
    receivedCount: sum(({ receivedCount }) => receivedCount),
    surplusCount: sum(({ surplusCount }) => surplusCount),
    malformedCount: sum(({ malformedCount }) => malformedCount),
    pendingCount: sum(({ pendingCount }) => pendingCount),
    pendingBytes: sum(({ pendingBytes }) => pendingBytes),
    lostCount: sum(({ lostCount }) => lostCount),
    behindCount: sum(({ behindCount }) => behindCount),
    log: log.reduce(joinLogs, NO_LOG),
    ...(retained.length === 0 ? undefined : { retained: retained.reduce(joinRetained) }),
  }
}

/** What remains of a broker that has stopped: its counters. It holds nothing any more. */
export function countersOf(stats: BrokerStats): BrokerStats {
  const { log: _, retained, ...counts } = stats
  return {
    ...counts,
    pendingCount: 0,
    pendingBytes: 0,
    ...(retained === undefined ? undefined : { retained: { ...retained, keyCount: 0, byteCount: 0 } }),
  }
}

const NO_LOG: LogStats = { messageCount: 0, byteCount: 0, oldestTimeMs: 0, lagMs: 0 }

function joinLogs(one: LogStats, other: LogStats): LogStats {
  const times = [one.oldestTimeMs, other.oldestTimeMs].filter((timeMs) => timeMs > 0)
  return {
    messageCount: one.messageCount + other.messageCount,
    byteCount: one.byteCount + other.byteCount,
    oldestTimeMs: times.length === 0 ? 0 : Math.min(...times),
    lagMs: Math.max(one.lagMs, other.lagMs),
  }
}

function joinRetained(one: RetainedStats, other: RetainedStats): RetainedStats {
  return {
    keyCount: one.keyCount + other.keyCount,
    byteCount: one.byteCount + other.byteCount,
    droppedCount: one.droppedCount + other.droppedCount,
  }
}

const FROM_BAD_TO_GOOD: readonly BrokerStatus[] = ['down', 'blocked', 'up']

/** The worst of several. */
export function worstOf<T extends { readonly status: BrokerStatus }>(first: T, others: readonly T[]): T {
  const rank = ({ status }: T) => FROM_BAD_TO_GOOD.indexOf(status)
  return others.reduce((worst, each) => (rank(each) < rank(worst) ? each : worst), first)
}
