import type { Health } from '../../features/observing/health/readiness.js'
import { EventLoopLag, SAMPLE_MS } from '../../features/observing/measuring/event-loop-lag.js'
import { NO_TOKEN_FAILURES } from '../identity/token-failure.js'
import type { TransportStats } from '../ports/transport.js'
import type { Rooms } from './assemble.js'
import { type Summary, statsOf } from './features.js'
import type { NodePhase, ServerNodeParts } from './parts.js'
import type { ServerStats } from './stats.js'
import { VERSION } from './version.js'

/** Those who ask more often share one reading: over a shorter time a rate says little. */
const MIN_RATE_INTERVAL_MS = 1_000

type NodeSummary = ReturnType<Summary>
type Rates = Pick<NodeSummary, 'receivedPerSecond' | 'sentPerSecond' | 'cpu' | 'eventLoopDelayMs' | 'brokerMs'>

/** How a node is, in numbers. */
export class NodeReport {
  readonly #parts: ServerNodeParts
  readonly #phase: NodePhase
  readonly #rooms: Rooms
  readonly #startedMs = performance.now()
  /** The last reading of the counters, and the rates until then. */
  #rated = { atMs: this.#startedMs, received: 0, sent: 0, cpuSeconds: cpuSeconds(), accepted: 0, acceptedSeconds: 0 }
  #rates: Rates = { receivedPerSecond: 0, sentPerSecond: 0 }
  /** From the first reading on, until the node stops. */
  #lag: EventLoopLag | undefined

  constructor(parts: ServerNodeParts, phase: NodePhase, rooms: Rooms) {
    this.#parts = parts
    this.#phase = phase
    this.#rooms = rooms
  }

  /** Ends what it watches. */
  stop(): void {
    this.#lag?.stop()
  }

  health(): Health {
    const { differentCount, otherLogCount, clockApartMs } = this.#rooms.nodes.stats()
    const { heldShare = 1 } = this.#rooms.broker.stats().log ?? {}
    return {
      status: this.#phase.isLeaving ? 'draining' : 'ok',
      node: this.#parts.name,
      version: VERSION,
      uptimeMs: Math.round(performance.now() - this.#startedMs),
      connections: this.#rooms.sessions.size,
      broker: this.#rooms.watch.report(),
      differentPeers: differentCount || undefined,
      otherLogPeers: otherLogCount || undefined,
      outbox: this.#parts.outbox?.status,
      outboxReason: this.#parts.outbox?.reason,
      waitingPublishes: this.#rooms.waitingRoom.messageCount || undefined,
      clockApartMs: clockApartMs || undefined,
      logHeldShare: heldShare < 1 ? heldShare : undefined,
    }
  }

  /** What other nodes are told of this one. */
  summary(): NodeSummary {
    const { node, status, version, uptimeMs, connections, broker, differentPeers = 0 } = this.health()
    const { measurements, refusals, delivery, router } = this.#rooms
    const ofTransport = this.#parts.transport.stats()
    return {
      node,
      version,
      status,
      uptimeMs,
      connections,
      patterns: router.patternCount,
      ...this.#ratesNow(ofTransport),
      broker: broker.name,
      brokerStatus: broker.status,
      memoryBytes: process.memoryUsage.rss(),
      recovered: measurements.resumes.stats().recovered,
      gaps: sumOf(delivery.gapCounts),
      refused: sumOf(refusals.counts) + sumOf(measurements.refusedUpgrades.stats()) + ofTransport.fullCount,
      slowConsumers: ofTransport.slowConsumerCount,
      differentPeers,
    }
  }

  /** Since the previous reading or, without one, since the start. Costs nothing when unread. */
  #ratesNow(ofTransport: TransportStats): Rates {
    const { atMs, ...last } = this.#rated
    const passedMs = performance.now() - atMs
    if (passedMs < MIN_RATE_INTERVAL_MS) return this.#rates
    const perSecond = (count: number, step = 0.1) => rounded((Math.max(0, count) / passedMs) * 1_000, step)
    const { publishes } = this.#rooms.measurements
    publishes.measureNext()
    const { count: accepted, sumSeconds: acceptedSeconds } = publishes.broker.stats()
    const now = {
      received: this.#receivedCountWith(ofTransport),
      sent: ofTransport.deliveredCount,
      cpuSeconds: cpuSeconds(),
      accepted,
      acceptedSeconds,
    }
    const delayMs = this.#lag && Math.max(0, this.#lag.read().max * 1_000 - SAMPLE_MS)
    if (this.#lag === undefined) {
      this.#lag = new EventLoopLag()
      this.#lag.start()
    }
    const newlyAccepted = accepted - last.accepted
    this.#rates = {
      receivedPerSecond: perSecond(now.received - last.received),
      sentPerSecond: perSecond(now.sent - last.sent),
      cpu: perSecond(now.cpuSeconds - last.cpuSeconds, 0.001),
      ...(delayMs !== undefined && { eventLoopDelayMs: rounded(delayMs, 0.1) }),
      ...(newlyAccepted > 0 && {
        brokerMs: rounded(((acceptedSeconds - last.acceptedSeconds) / newlyAccepted) * 1_000, 0.001),
      }),
    }
    this.#rated = { atMs: atMs + passedMs, ...now }
    return this.#rates
  }

  /** Of the session layer, and of the transport, which may answer some itself. */
  #receivedCountWith({ answeredMessageCount }: TransportStats): number {
    return this.#rooms.dispatcher.receivedCount + answeredMessageCount
  }

  stats(): Omit<ServerStats, 'http' | 'hooks'> {
    const { transport, verifier, proxies } = this.#parts
    const { broker, sessions, router, dispatcher, measurements, watch } = this.#rooms
    const { status, awayMs, lastAwayMs } = watch
    const ofTransport = transport.stats()
    const measured = measurements.stats()
    return {
      connectionCount: sessions.size,
      userCount: this.#rooms.users.size,
      listenCount: this.#rooms.userListens.totalCount,
      patternCount: router.patternCount,
      patternBytes: router.byteCount,
      receivedCount: this.#receivedCountWith(ofTransport),
      routedCount: this.#rooms.delivery.routedCount,
      localDroppedCount: this.#rooms.localListeners.droppedCount,
      refusedCounts: this.#rooms.refusals.counts,
      ...measured,
      refusedUpgradeCounts: {
        ...measured.refusedUpgradeCounts,
        E_CONNECTION_LIMIT: measured.refusedUpgradeCounts.E_CONNECTION_LIMIT + ofTransport.fullCount,
      },
      tokenFailureCounts: {
        ...(verifier?.failureCounts ?? NO_TOKEN_FAILURES),
        missing: measurements.missingTokenCount,
      },
      gapCounts: this.#rooms.delivery.gapCounts,
      connectionLimitCounts: {
        address: this.#rooms.addresses.refusedCount,
        user: this.#rooms.users.refusedCount,
        node: ofTransport.fullCount,
      },
      publishRateCounts: this.#rooms.publishRates.refusedCounts,
      waitingPublishCount: this.#rooms.waitingRoom.messageCount,
      publishWindowCount: broker.room?.windowCount ?? 0,
      malformedForwardedCount: proxies.malformedCount,
      refusedMessageCounts: this.#rooms.refused.counts,
      ...statsOf(this.#rooms.features),
      work: dispatcher.turns.stats(),
      broker: { ...broker.stats(), status, awayMs, lastAwayMs },
      transport: ofTransport,
    }
  }
}

/** Of the process, since its start. */
function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

/** To a multiple of the step, without the digits of a binary fraction. */
function rounded(value: number, step: number): number {
  const perUnit = Math.round(1 / step)
  return Math.round(value * perUnit) / perUnit
}
