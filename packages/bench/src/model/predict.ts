import { PING_INTERVAL_S } from './assumptions.js'
import { usableCores } from './broker-load.js'
import { estimateLatency, type LatencyEstimate } from './estimate-latency.js'
import { publisherNodes, type Question, type Resource, type Size, sizeOf } from './size.js'
import { shareOf, type Traffic, trafficOf } from './workload.js'

/** A whole system and its load. */
export interface Prediction {
  readonly traffic: Traffic
  readonly size: Size
  /** Over all brokers, those that only publish included. */
  readonly nodes: number
  /** Cores that are bought: of all nodes and brokers. */
  readonly cores: number
  /** Of them, those that are busy. */
  readonly busyCores: number
  /** Of all nodes. */
  readonly memoryBytes: number
  readonly outBytesPerSecond: number
  /** To the nodes, from clients: publishes and pings, without headers of packets. */
  readonly inBytesPerSecond: number
  readonly brokerOutBytesPerSecond: number
  readonly latency: LatencyEstimate
  /** In the currency of the assumed prices. */
  readonly pricePerHour: number
}

const GIB = 2 ** 30
const SECONDS_PER_HOUR = 3_600
/** Of a `publish` or `ping` beyond the payload: frame, mask, verb, id and key. */
const CLIENT_MESSAGE_BYTES = 40
const PING_BYTES = 10

/** What a workload needs, or the resource of which no number of brokers has enough. */
export function predict(question: Question): Prediction | Resource {
  const { coefficients, kind, workload, connections, assumptions } = question
  const size = sizeOf(question)
  if (typeof size === 'string') return size
  const traffic = trafficOf(workload, connections)
  const part = shareOf(workload, traffic, size.brokers)
  const publishers = publisherNodes(question, size, traffic)
  const serving = size.brokers * size.nodesPerBroker
  const nodes = serving + publishers
  const brokerCores = kind === 'memory' ? 0 : usableCores(kind, assumptions)
  const cores = nodes * assumptions.nodeCores + size.brokers * brokerCores
  const memoryBytes = serving * size.node.memoryBytes + publishers * coefficients.node.baseBytes
  const outBytesPerSecond = serving * size.node.outBytesPerSecond
  const { coreHourPrice, gibHourPrice, gibOutPrice } = assumptions
  return {
    traffic,
    size,
    nodes,
    cores,
    busyCores: serving * (size.node.mainCores + size.node.writeCores) + size.brokers * (size.broker?.cores ?? 0),
    memoryBytes,
    outBytesPerSecond,
    inBytesPerSecond:
      connections * workload.clientPublishesPerSecond * (workload.payloadBytes + CLIENT_MESSAGE_BYTES) +
      (connections / PING_INTERVAL_S) * PING_BYTES,
    brokerOutBytesPerSecond: size.brokers * (size.broker?.outBytesPerSecond ?? 0),
    latency: estimateLatency(
      kind,
      coefficients.node,
      kind === 'memory' ? undefined : coefficients.brokers[kind],
      workload,
      part,
      size,
      assumptions,
    ),
    pricePerHour:
      cores * coreHourPrice +
      (memoryBytes / GIB) * gibHourPrice +
      (outBytesPerSecond / GIB) * SECONDS_PER_HOUR * gibOutPrice,
  }
}
