import type { NodeSummary } from '../http/operators/index.js'
import type { ServerStats } from '../http/stats.js'
import { NO_TOKEN_FAILURES } from '../identity/paced-verifier.js'
import type { Health } from '../observing/health/readiness.js'
import type { TransportStats } from '../ports/transport.js'
import type { Rooms } from './assemble.js'
import type { NodePhase, ServerNodeParts } from './parts.js'
import { VERSION } from './version.js'

/** Those who ask more often share one reading: over a shorter time a rate says little. */
const MIN_RATE_INTERVAL_MS = 1_000

/** How a node is, in numbers. */
export class NodeReport {
  readonly #parts: ServerNodeParts
  readonly #phase: NodePhase
  readonly #rooms: Rooms
  readonly #startedMs = performance.now()
  /** The last reading of the counters, and the rates until then. */
  #rated = { atMs: this.#startedMs, received: 0, sent: 0 }
  #rates = { receivedPerSecond: 0, sentPerSecond: 0 }

  constructor(parts: ServerNodeParts, phase: NodePhase, rooms: Rooms) {
    this.#parts = parts
    this.#phase = phase
    this.#rooms = rooms
  }

  health(): Health {
    const { differentCount, otherLogCount } = this.#rooms.nodes.stats()
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
    }
  }

  /** What other nodes are told of this one. */
  summary(): NodeSummary {
    const { node, status, version, uptimeMs, connections, broker } = this.health()
    return {
      node,
      version,
      status,
      uptimeMs,
      connections,
      patterns: this.#rooms.router.patternCount,
      ...this.#ratesNow(),
      broker: broker.name,
      brokerStatus: broker.status,
    }
  }

  /** Since the previous reading or, without one, since the start. Costs nothing when unread. */
  #ratesNow(): Pick<NodeSummary, 'receivedPerSecond' | 'sentPerSecond'> {
    const { atMs, ...last } = this.#rated
    const passedMs = performance.now() - atMs
    if (passedMs < MIN_RATE_INTERVAL_MS) return this.#rates
    const perSecond = (count: number) => Math.round((Math.max(0, count) / passedMs) * 10_000) / 10
    const ofTransport = this.#parts.transport.stats()
    const received = this.#receivedCountWith(ofTransport)
    const sent = ofTransport.deliveredCount
    this.#rates = {
      receivedPerSecond: perSecond(received - last.received),
      sentPerSecond: perSecond(sent - last.sent),
    }
    this.#rated = { atMs: atMs + passedMs, received, sent }
    return this.#rates
  }

  /** Of the session layer, and of the transport, which may answer some itself. */
  #receivedCountWith({ answeredMessageCount }: TransportStats): number {
    return this.#rooms.dispatcher.receivedCount + answeredMessageCount
  }

  stats(): Omit<ServerStats, 'http' | 'hooks'> {
    const { transport, verifier, proxies, outbox } = this.#parts
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
      presence: this.#rooms.presence.stats(),
      ...(this.#rooms.occupancy && { occupancy: this.#rooms.occupancy.stats() }),
      cluster: this.#rooms.cluster.stats(),
      queueGroups: this.#rooms.groups.stats(),
      streams: this.#rooms.streams.stats(),
      work: dispatcher.turns.stats(),
      ...(outbox && { outbox: outbox.stats() }),
      broker: { ...broker.stats(), status, awayMs, lastAwayMs },
      transport: ofTransport,
    }
  }
}
