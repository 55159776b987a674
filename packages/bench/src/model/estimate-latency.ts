import type { Assumptions } from './assumptions.js'
import { usableCores } from './broker-load.js'
import type { BrokerCosts, NodeCosts } from './coefficients.js'
import type { ModelBroker, Size } from './size.js'
import type { Traffic, Workload } from './workload.js'

/** From a publish to the receipt by clients on a network without delay. */
export interface LatencyEstimate {
  readonly p50Ms: number
  readonly p99Ms: number
}

/** ln(100): the 99th percentile of an exponential wait is this many times its mean. */
const P99_OF_MEAN = Math.log(100)

/**
 * A message waits for earlier ones (M/D/1), then a node writes it to its listeners one after the other. The broker adds
 * its measured hop, longer by its utilization.
 */
export function estimateLatency(
  kind: ModelBroker,
  node: NodeCosts,
  broker: BrokerCosts | undefined,
  workload: Workload,
  traffic: Traffic,
  size: Size,
  assumptions: Assumptions,
): LatencyEstimate {
  const threads = Math.max(1, assumptions.nodeCores - 1)
  const nodesWithListeners = Math.max(1, Math.min(size.nodesPerBroker, traffic.listenersPerKey))
  const listeners = Math.max(1, traffic.listenersPerKey / nodesWithListeners)
  const frameUs = node.writeUs + node.frameUs + (workload.payloadBytes * node.byteNs) / 1_000
  const fanOutMs = (Math.ceil(listeners / threads) * frameUs) / 1_000
  const busy = Math.min(0.99, size.node.writeCores / threads)
  const waitMs = (busy / (1 - busy)) * (fanOutMs / 2)
  const brokerBusy =
    kind === 'memory' || size.broker === undefined
      ? 0
      : Math.min(0.99, size.broker.cores / usableCores(kind, assumptions))
  const hop = broker === undefined ? { p50: 0, p99: 0 } : { p50: broker.hopP50Ms, p99: broker.hopP99Ms }
  return {
    p50Ms: hop.p50 / (1 - brokerBusy) + fanOutMs / 2 + waitMs,
    p99Ms: hop.p99 / (1 - brokerBusy) + fanOutMs + waitMs * P99_OF_MEAN,
  }
}
