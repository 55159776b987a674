import type { ServiceBrokerKind } from '../brokers/broker-choice.js'
import type { Assumptions } from './assumptions.js'
import type { BrokerCosts } from './coefficients.js'
import type { NodeLoad } from './node-load.js'
import type { Traffic, Workload } from './workload.js'

/** The load of one broker. */
export interface BrokerLoad {
  /** Published to it. */
  readonly inPerSecond: number
  /** Passed to nodes. */
  readonly outPerSecond: number
  readonly cores: number
  /** Part of the cores that takes logged messages; each partition of the log is written by one thread. */
  readonly logCores: number
  readonly inBytesPerSecond: number
  readonly outBytesPerSecond: number
  readonly connections: number
}

/** Connections of one node to its broker: to publish and to consume; those of a partition come on top. */
const LINKS: Readonly<Record<ServiceBrokerKind, number>> = { redis: 2, nats: 1, rabbitmq: 2 }

/** The load that these nodes make. */
export function brokerLoad(
  kind: ServiceBrokerKind,
  costs: BrokerCosts,
  workload: Workload,
  traffic: Traffic,
  nodes: { readonly load: NodeLoad; readonly count: number },
  { historyPartitions }: Assumptions,
): BrokerLoad {
  const { loggedShare, payloadBytes } = workload
  const { receivedPerSecond, receivedLoggedPerSecond } = nodes.load
  const logged = traffic.publishesPerSecond * loggedShare
  const plain = traffic.publishesPerSecond - logged
  const loggedCopies = receivedLoggedPerSecond * nodes.count
  const plainCopies = (receivedPerSecond - receivedLoggedPerSecond) * nodes.count
  const logCores = logged * costs.brokerLoggedUs * 1e-6
  return {
    inPerSecond: logged + plain,
    outPerSecond: loggedCopies + plainCopies,
    cores:
      logCores +
      (plain * costs.brokerUs + plainCopies * costs.brokerCopyUs + loggedCopies * costs.brokerLoggedCopyUs) * 1e-6,
    logCores,
    inBytesPerSecond: plain * (payloadBytes + costs.publishBytes) + logged * (payloadBytes + costs.publishLoggedBytes),
    outBytesPerSecond:
      plainCopies * (payloadBytes + costs.copyBytes) + loggedCopies * (payloadBytes + costs.copyLoggedBytes),
    connections: nodes.count * LINKS[kind] * (historyPartitions > 1 ? 1 + historyPartitions : 1),
  }
}

/** Cores that a broker can use. */
export function usableCores(kind: ServiceBrokerKind, { brokerCores }: Assumptions): number {
  return kind === 'redis' ? 1 : brokerCores
}
