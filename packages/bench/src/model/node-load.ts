import {
  type Assumptions,
  KERNEL_BYTES_PER_CONNECTION,
  LOG_COPY_BYTES,
  MAX_SEGMENT_BYTES,
  PACKET_BYTES,
  PING_INTERVAL_S,
} from './assumptions.js'
import type { BrokerCosts, NodeCosts } from './coefficients.js'
import { paceOf } from './flush-pacing.js'
import type { Traffic, Workload } from './workload.js'

/** The load of one of `nodeCount` equal nodes. */
export interface NodeLoad {
  readonly connections: number
  /** Cores of JavaScript: connects, publishes, messages of the broker. One thread has all of it. */
  readonly mainCores: number
  /** Part of them that more nodes do not lower: logged messages that every node gets. */
  readonly followCores: number
  /** Cores that write to sockets, over all I/O threads. */
  readonly writeCores: number
  readonly memoryBytes: number
  /** Messages that the broker sends it. */
  readonly receivedPerSecond: number
  readonly receivedLoggedPerSecond: number
  readonly deliveriesPerSecond: number
  readonly writesPerSecond: number
  readonly framesPerWrite: number
  /** From one flush of an I/O thread to the next; 0: everything leaves in its turn. */
  readonly cycleS: number
  /** To clients, with the headers of packets. */
  readonly outBytesPerSecond: number
}

/** Everything that decides a node's load. */
export interface NodeSetting {
  readonly node: NodeCosts
  /** Absent: the memory broker. */
  readonly broker: BrokerCosts | undefined
  readonly workload: Workload
  readonly traffic: Traffic
  readonly assumptions: Assumptions
}

const US = 1e-6
const NS = 1e-9

/** Cost: O(1). */
export function nodeLoad({ node, broker, workload, traffic, assumptions }: NodeSetting, nodeCount: number): NodeLoad {
  const connections = traffic.connections / nodeCount
  const { loggedShare, payloadBytes, clientPublishesPerSecond } = workload
  const presence = keyPresence(traffic, nodeCount, assumptions.isSharded)
  const followed = followedShare(traffic, nodeCount, presence, assumptions)
  const plainPerSecond = traffic.publishesPerSecond * (1 - loggedShare) * presence
  const loggedPerSecond = traffic.publishesPerSecond * loggedShare * Math.max(presence, followed)
  const followCores = broker === undefined ? 0 : loggedPerSecond * broker.listenerLoggedUs * US
  const publishUs =
    broker === undefined
      ? node.clientPublishUs
      : node.clientPublishUs + broker.publisherUs * (1 - loggedShare) + broker.publisherLoggedUs * loggedShare
  const ownPublishes = connections * clientPublishesPerSecond
  const mainCores =
    node.idleCores +
    followCores +
    (connections / PING_INTERVAL_S) * node.keepaliveUs * US +
    (traffic.connectsPerSecond / nodeCount) * node.connectUs * US +
    ownPublishes * publishUs * US +
    (broker === undefined
      ? traffic.serverPublishesPerSecond * node.publishUs * US
      : plainPerSecond * broker.listenerUs * US)
  const deliveriesPerSecond = traffic.deliveriesPerSecond / nodeCount
  const threads = writeThreads(assumptions)
  const { framesPerWrite, busyShare, cycleS } = paceOf({
    connections: connections / threads,
    messagesPerSecond: connections > 0 ? deliveriesPerSecond / connections : 0,
    writeS: node.writeUs * US,
    frameS: node.frameUs * US + payloadBytes * node.byteNs * NS,
  })
  const writesPerSecond = deliveriesPerSecond / framesPerWrite
  const frameBytes = payloadBytes + node.frameBytes
  const packetsPerWrite = Math.ceil((framesPerWrite * frameBytes) / MAX_SEGMENT_BYTES)
  return {
    connections,
    mainCores,
    followCores,
    writeCores: busyShare * threads,
    framesPerWrite,
    cycleS,
    memoryBytes:
      node.baseBytes +
      (loggedShare > 0 ? LOG_COPY_BYTES : 0) +
      connections * (node.connectionBytes + KERNEL_BYTES_PER_CONNECTION),
    receivedPerSecond: broker === undefined ? 0 : plainPerSecond + loggedPerSecond,
    receivedLoggedPerSecond: broker === undefined ? 0 : loggedPerSecond,
    deliveriesPerSecond,
    writesPerSecond,
    outBytesPerSecond: deliveriesPerSecond * frameBytes + writesPerSecond * packetsPerWrite * PACKET_BYTES,
  }
}

/** I/O threads of a node: one core is left to JavaScript. */
export function writeThreads({ nodeCores }: Assumptions): number {
  return Math.max(1, nodeCores - 1)
}

/** Share of all keys that have a listener on one node, 0 to 1. */
export function keyPresence({ listenersPerKey, connections }: Traffic, nodeCount: number, isSharded: boolean): number {
  if (nodeCount <= 1) return 1
  if (!isSharded) return -Math.expm1(listenersPerKey * Math.log1p(-1 / nodeCount))
  // The listeners of a key are on as few nodes as hold them.
  const nodesPerKey = Math.max(1, (listenersPerKey * nodeCount) / connections)
  return Math.min(1, nodesPerKey / nodeCount)
}

/** Share of the log that a node follows: the partitions of keys with a listener there. */
function followedShare(
  { keys }: Traffic,
  nodeCount: number,
  presence: number,
  { historyPartitions, isSharded }: Assumptions,
): number {
  if (historyPartitions <= 1) return 1
  if (isSharded) return Math.min(1, Math.max(1 / historyPartitions, 1 / nodeCount, presence))
  return -Math.expm1(keys * presence * Math.log1p(-1 / historyPartitions))
}
