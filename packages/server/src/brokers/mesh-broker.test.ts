import type { BrokerCapabilities } from '../broker.js'
import type { BrokerSystem } from '../conformance/broker/harness.js'
import { brokerSuite } from '../conformance/broker-suite.js'
import { createMeshBroker, type MeshBroker, type MeshBrokerOptions } from './mesh-broker.js'

const LOOPBACK = { host: '127.0.0.1', port: 0 }
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined }
const DEFAULTS: MeshBrokerOptions = {
  listen: LOOPBACK,
  peers: [],
  secret: 'shared by the nodes of this test',
  brokerNamespace: 'test',
  brokerTimeoutMs: 5_000,
  brokerStartTimeoutMs: 5_000,
  brokerHeartbeatMs: 1_000,
  brokerMaxPendingBytes: 16 * 1_048_576,
  maxPayloadBytes: 262_144,
  dedupeWindowMs: 60_000,
  dedupeMaxIds: 1_000,
  log: silent,
}
const CAPABILITIES: BrokerCapabilities = {
  history: false,
  ordered: false,
  confirms: true,
  queueGroups: false,
  durable: false,
  manyNodes: true,
}

/** Nodes that each know those that were there before. */
function createSystem(): BrokerSystem {
  const nodes: MeshBroker[] = []
  return {
    createNode() {
      const peers = nodes.flatMap(({ address }) => (address === undefined ? [] : [address]))
      const node = createMeshBroker({ ...DEFAULTS, peers })
      nodes.push(node)
      return node
    },
    residue: async () => openSockets(),
  }
}

/** Sockets of this process, and servers: a line each. */
function openSockets(): string[] {
  return process.getActiveResourcesInfo().filter((kind) => kind.startsWith('TCP'))
}

brokerSuite('mesh', createSystem, CAPABILITIES)
