import type { ServerStats } from '../http/stats.js'
import type { Cluster, NodeSummary } from '../identity/operators/index.js'
import { NO_TOKEN_FAILURES } from '../identity/token-failures.js'
import type { BrokerWatch } from '../observing/health/broker-watch.js'
import type { Health } from '../observing/health/readiness.js'
import type { Measurements } from '../observing/measuring/measurements.js'
import type { Router } from '../patterns/router.js'
import type { Broker } from '../ports/broker.js'
import type { Presence } from '../presence/index.js'
import type { PublishRates } from '../publishing/publish-rates.js'
import type { Refusals } from '../publishing/refusals.js'
import type { QueueGroups } from '../queue-groups/index.js'
import type { Delivery } from '../routing/delivery.js'
import type { LocalListeners } from '../routing/in-process/listeners.js'
import type { RefusedMessages } from '../routing/refused-messages.js'
import type { ConnectionCounts } from '../session/connection-counts.js'
import type { Dispatcher } from '../session/dispatcher.js'
import type { SessionTable } from '../session/table.js'
import type { NodePhase, ServerNodeParts } from './parts.js'
import { RateReader } from './rates.js'
import { VERSION } from './version.js'

/** The rooms that a {@link NodeReport} counts. */
export interface NodeReportContext {
  readonly parts: ServerNodeParts
  readonly phase: NodePhase
  readonly broker: Broker
  readonly router: Router
  readonly sessions: SessionTable
  readonly dispatcher: Dispatcher
  readonly delivery: Delivery
  readonly localListeners: LocalListeners
  readonly refusals: Refusals
  readonly measurements: Measurements
  readonly addresses: ConnectionCounts
  readonly users: ConnectionCounts
  readonly publishRates: PublishRates
  readonly refused: RefusedMessages
  readonly presence: Presence
  readonly cluster: Cluster
  readonly groups: QueueGroups
  readonly watch: BrokerWatch
}

/** How a node is, in numbers. */
export class NodeReport {
  readonly #context: NodeReportContext
  readonly #startedMs = performance.now()
  readonly #rates: RateReader

  constructor(context: NodeReportContext) {
    this.#context = context
    const { transport } = context.parts
    this.#rates = new RateReader(() => ({
      received: this.#receivedCount,
      sent: transport.stats().deliveredCount,
    }))
  }

  health(): Health {
    const { name } = this.#context.parts
    return {
      status: this.#context.phase.isLeaving ? 'draining' : 'ok',
      node: name,
      version: VERSION,
      uptimeMs: Math.round(performance.now() - this.#startedMs),
      connections: this.#context.sessions.size,
      broker: this.#context.watch.report(),
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
      patterns: this.#context.router.patternCount,
      ...this.#rates.rates(),
      broker: broker.name,
      brokerStatus: broker.status,
    }
  }

  /** Of the session layer, and of the transport, which may answer some itself. */
  get #receivedCount(): number {
    return this.#context.dispatcher.receivedCount + this.#context.parts.transport.stats().answeredMessageCount
  }

  stats(): Omit<ServerStats, 'http' | 'hooks'> {
    const { broker, parts } = this.#context
    const { transport } = parts
    const { status, awayMs, lastAwayMs } = this.#context.watch
    return {
      connectionCount: this.#context.sessions.size,
      userCount: this.#context.users.size,
      listenCount: [...this.#context.sessions].reduce((count, session) => count + session.listenCount, 0),
      patternCount: this.#context.router.patternCount,
      patternBytes: this.#context.router.byteCount,
      receivedCount: this.#receivedCount,
      routedCount: this.#context.delivery.routedCount,
      localDroppedCount: this.#context.localListeners.droppedCount,
      refusedCounts: this.#context.refusals.counts,
      ...this.#context.measurements.stats(),
      tokenFailureCounts: {
        ...(this.#context.parts.verifier?.failureCounts ?? NO_TOKEN_FAILURES),
        missing: this.#context.measurements.missingTokenCount,
      },
      gapCounts: this.#context.delivery.gapCounts,
      connectionLimitCounts: { address: this.#context.addresses.refusedCount, user: this.#context.users.refusedCount },
      publishRateCounts: this.#context.publishRates.refusedCounts,
      malformedForwardedCount: this.#context.parts.proxies.malformedCount,
      refusedMessageCounts: this.#context.refused.counts,
      presence: this.#context.presence.stats(),
      cluster: this.#context.cluster.stats(),
      queueGroups: this.#context.groups.stats(),
      work: this.#context.dispatcher.turns.stats(),
      broker: { ...broker.stats(), status, awayMs, lastAwayMs },
      transport: transport.stats(),
    }
  }
}
