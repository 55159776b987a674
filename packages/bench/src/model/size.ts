import type { BrokerKind, ServiceBrokerKind } from '../brokers/broker-choice.js'
import type { Assumptions } from './assumptions.js'
import { type BrokerLoad, brokerLoad, usableCores } from './broker-load.js'
import type { Coefficients } from './coefficients.js'
import { BUSY_SHARE } from './flush-pacing.js'
import { type NodeLoad, type NodeSetting, nodeLoad, writeThreads } from './node-load.js'
import { shareOf, type Traffic, trafficOf, type Workload } from './workload.js'

/** Brokers that the model knows. A mesh has none, and is for few nodes. */
export type ModelBroker = Exclude<BrokerKind, 'mesh'>
export const MODEL_BROKERS: readonly ModelBroker[] = ['memory', 'redis', 'nats', 'rabbitmq']

/** What runs out first. */
export type Resource = 'node-follow' | 'node-main' | 'broker-cpu' | 'broker-log' | 'broker-network' | 'one-node'

/** A system that holds the load. */
export interface Size {
  /** Brokers, each with its own nodes; for `memory` single nodes. */
  readonly brokers: number
  /** Of each broker. */
  readonly nodesPerBroker: number
  readonly node: NodeLoad
  /** Absent: the memory broker. */
  readonly broker?: BrokerLoad
}

/** The input of a prediction. */
export interface Question {
  readonly coefficients: Coefficients
  readonly kind: ModelBroker
  readonly workload: Workload
  readonly connections: number
  readonly assumptions: Assumptions
}

/** More is nobody's system. */
const MAX_NODES = 1e7
const MAX_BROKERS = 1e6

/** More brokers than necessary are tried up to this many times as many: each then has fewer nodes to serve. */
const MOST_SPARE_BROKERS = 4
const TRIALS = 64
/** A system with fewer brokers may have so many times the cores of the cheapest one. */
const MOST_CORES = 1.25

/**
 * The system with the fewest brokers that has at most a quarter more cores than the cheapest one that holds the load.
 * The resource that runs out when no number of brokers suffices.
 */
export function sizeOf(question: Question): Size | Resource {
  const fewest = fewestBrokers(question)
  if (typeof fewest === 'string') return fewest
  const most = question.kind === 'memory' ? fewest : MOST_SPARE_BROKERS * (fewest + 1)
  const step = Math.max(1, Math.floor((most - fewest) / TRIALS))
  const sizes: Size[] = []
  for (let brokers = fewest; brokers <= most; brokers += step) {
    const size = trySize(question, brokers)
    if (typeof size !== 'string') sizes.push(size)
  }
  const least = Math.min(...sizes.map((size) => coresOf(question, size)))
  return sizes.find((size) => coresOf(question, size) <= MOST_CORES * least) ?? trySize(question, fewest)
}

/** That are bought, without those that only publish. */
function coresOf({ kind, assumptions }: Question, { brokers, nodesPerBroker }: Size): number {
  const brokerCores = kind === 'memory' ? 0 : usableCores(kind, assumptions)
  return brokers * (nodesPerBroker * assumptions.nodeCores + brokerCores)
}

function fewestBrokers(question: Question): number | Resource {
  const first = trySize(question, 1)
  if (typeof first !== 'string') return 1
  let low = 1
  let high = 2
  for (; typeof trySize(question, high) === 'string'; high *= 2) {
    if (high >= MAX_BROKERS) return first
    low = high
  }
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (typeof trySize(question, middle) === 'string') low = middle
    else high = middle
  }
  return high
}

/** The system with this many brokers, or the resource that one of them lacks. */
export function trySize(
  { coefficients, kind, workload, connections, assumptions }: Question,
  brokers: number,
): Size | Resource {
  const traffic = shareOf(workload, trafficOf(workload, connections), brokers)
  const broker = kind === 'memory' ? undefined : brokerCosts(coefficients, kind)
  const setting: NodeSetting = { node: coefficients.node, broker, workload, traffic, assumptions }
  if (kind === 'memory' || broker === undefined) {
    const node = nodeLoad(setting, 1)
    return fits(node, assumptions) ? { brokers, nodesPerBroker: 1, node } : 'one-node'
  }
  const nodesPerBroker = nodesNeeded(setting)
  if (typeof nodesPerBroker === 'string') return nodesPerBroker
  const node = nodeLoad(setting, nodesPerBroker)
  const load = brokerLoad(kind, broker, workload, traffic, { load: node, count: nodesPerBroker }, assumptions)
  return brokerLacks(kind, load, assumptions) ?? { brokers, nodesPerBroker, node, broker: load }
}

function brokerCosts(coefficients: Coefficients, kind: ServiceBrokerKind) {
  const costs = coefficients.brokers[kind]
  if (costs === undefined) throw new RangeError(`the coefficients have no ${kind}`)
  return costs
}

function brokerLacks(kind: ServiceBrokerKind, load: BrokerLoad, assumptions: Assumptions): Resource | undefined {
  const { utilization, historyPartitions } = assumptions
  if (kind !== 'redis' && load.logCores > historyPartitions * utilization) return 'broker-log'
  if (load.cores > usableCores(kind, assumptions) * utilization) return 'broker-cpu'
  if (Math.max(load.inBytesPerSecond, load.outBytesPerSecond) > networkBytes(assumptions)) return 'broker-network'
  return undefined
}

/** The fewest nodes that hold the load, or why no number does. Load per node falls with more nodes, never to 0. */
function nodesNeeded(setting: NodeSetting): number | Resource {
  const { assumptions } = setting
  const isEnough = (count: number) => fits(nodeLoad(setting, count), assumptions)
  let high = Math.max(1, Math.ceil(setting.traffic.connections / assumptions.nodeConnections))
  let low = high - 1
  while (!isEnough(high)) {
    if (high >= MAX_NODES) {
      const { followCores } = nodeLoad(setting, high)
      return followCores > assumptions.utilization / 2 ? 'node-follow' : 'node-main'
    }
    low = high
    high *= 2
  }
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (isEnough(middle)) high = middle
    else low = middle
  }
  return high
}

function fits(load: NodeLoad, assumptions: Assumptions): boolean {
  const { nodeCores, nodeConnections, utilization } = assumptions
  return (
    load.connections <= nodeConnections &&
    load.mainCores <= utilization &&
    // A thread that writes more puts several messages into a write.
    load.writeCores <= writeThreads(assumptions) * BUSY_SHARE &&
    load.mainCores + load.writeCores <= nodeCores &&
    load.outBytesPerSecond <= networkBytes(assumptions)
  )
}

/** Of one machine, in one direction. */
function networkBytes({ networkGbits, utilization }: Assumptions): number {
  return (networkGbits * 1e9 * utilization) / 8
}

/** Publishes of back ends come through nodes without clients. Their number, over all brokers. */
export function publisherNodes(
  { coefficients, kind, workload, assumptions }: Question,
  size: Size,
  traffic: Traffic,
): number {
  if (kind === 'memory' || traffic.serverPublishesPerSecond === 0) return 0
  const { publisherUs, publisherLoggedUs } = brokerCosts(coefficients, kind)
  const eachUs = publisherUs * (1 - workload.loggedShare) + publisherLoggedUs * workload.loggedShare
  const copies = workload.split === 'copies' ? size.brokers : 1
  return Math.max(1, Math.ceil((traffic.serverPublishesPerSecond * copies * eachUs * 1e-6) / assumptions.utilization))
}
