import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServerOptions } from 'webmq-server'
import {
  type FaultProxy,
  freePort,
  type Service,
  type ServiceKind,
  sharedService,
  startFaultProxy,
  startNats,
  startRabbitmq,
  startRedis,
} from 'webmq-services'
import { NodeInProcess, NodeProcess, type TestNode } from './node.js'
import { type BrokerFault, stopAll, type TestSystem } from './system.js'

/** Where the nodes of a system live. `processes` can be killed. */
export type NodePlace = 'in-process' | 'processes'

/** A broker, as the tests of history see it. */
export interface BrokerRow {
  readonly name: string
  /** Whether the log outlives any node, so that only the broker can lose something. */
  readonly isLogShared: boolean
  /** Whether a position is good on its own node alone, so that a client that moves is told a gap. */
  readonly movesTellGap: boolean
  /** A system with a broker that works. */
  start(place: NodePlace, options?: ServerOptions): Promise<TestSystem>
  /** One whose broker can be broken, its data being kept; absent when there is no broker but the nodes. */
  startFaulty?(place?: NodePlace, options?: ServerOptions): Promise<TestSystem>
}

/** Found dead after this and the timeout of the client's heartbeat. */
const PING_INTERVAL_MS = 40
const BROKER_HEARTBEAT_MS = 300
/** Longer than the heartbeats take to find that nothing comes through. */
const SWALLOW_MS = 1_000
const CUT_MS = 300
const MESH_NODE_COUNT = 3
const NODE_COUNT = 2

/** What all nodes of these tests have in common. */
const NODE_OPTIONS = {
  logLevel: 'silent',
  threads: 1,
  history: ['#=10000'],
  historyMaxMessages: 20_000,
  historyMaxBytes: 64 * 1_048_576,
  pingIntervalMs: PING_INTERVAL_MS,
  pingTimeoutMs: 1_000,
  closeTimeoutMs: 100,
  brokerHeartbeatMs: BROKER_HEARTBEAT_MS,
} as const satisfies ServerOptions

export const memory: BrokerRow = {
  name: 'memory',
  isLogShared: false,
  movesTellGap: false,
  start: (place, options) => startNodes(place, [{ ...options }], () => Promise.resolve()),
}

export const mesh: BrokerRow = {
  name: 'mesh',
  isLogShared: false,
  movesTellGap: true,
  async start(place, options) {
    const ports = await Promise.all(Array.from({ length: MESH_NODE_COUNT }, () => freePort()))
    const places = ports.map((port) => `127.0.0.1:${port}`)
    const broker = `mesh://${places.join(',')}`
    const shared = { broker, brokerNamespace: freshNamespace(), ...options }
    const nodes = places.map((listen) => ({ ...shared, mesh: { listen } }))
    return await startNodes(place, nodes, () => Promise.resolve())
  },
}

export const redis = rowOf('redis', () => startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] }))
export const nats = rowOf('nats', () => startNats({ isPrivate: true, hasJetStream: true }))
export const rabbitmq = rowOf('rabbitmq', () => startRabbitmq({ isPrivate: true }))

/** A broker that is a program of its own. */
const STREAM_STORED_MS = 1_500

function rowOf(name: ServiceKind, startPrivate: () => Promise<Service>): BrokerRow {
  return {
    name,
    isLogShared: true,
    movesTellGap: false,
    async start(place, options) {
      const { url: broker } = await sharedService(name)
      const shared = { broker, brokerNamespace: freshNamespace(), ...options }
      return await startNodes(place, Array(NODE_COUNT).fill(shared), () => Promise.resolve())
    },
    async startFaulty(place = 'in-process', own = {}) {
      const service = await startPrivate()
      const proxies = await Promise.all(Array.from({ length: NODE_COUNT }, () => startFaultProxy(service)))
      const brokerNamespace = freshNamespace()
      const options = proxies.map(({ url: broker }) => ({ broker, brokerNamespace, ...own }))
      const system = await startNodes(place, options, async () => {
        await Promise.all(proxies.map((proxy) => proxy.stop()))
        await service.stop()
      })
      // RabbitMQ 3.10 writes down that it has a stream half a second after that. One that is killed before never finds
      // the stream again.
      if (name === 'rabbitmq') await sleep(STREAM_STORED_MS)
      return { ...system, faults: faultsOf(service, proxies) }
    },
  }
}

function faultsOf(service: Service, proxies: readonly FaultProxy[]): BrokerFault[] {
  const of = (targets: readonly FaultProxy[], fault: 'cut' | 'swallow') => ({
    inject: async () => {
      await Promise.all(targets.map((proxy) => proxy[fault]()))
    },
    end: async () => {
      await Promise.all(targets.map((proxy) => proxy.heal()))
    },
    holdMs: fault === 'cut' ? CUT_MS : SWALLOW_MS,
  })
  return [
    { name: 'one node cut off', ...of(proxies.slice(0, 1), 'cut') },
    { name: 'all nodes cut off', ...of(proxies, 'cut') },
    { name: 'killed and restarted', inject: () => service.kill(), end: () => service.restart(), holdMs: CUT_MS },
    { name: 'one node half-open', ...of(proxies.slice(-1), 'swallow') },
    { name: 'all nodes half-open', ...of(proxies, 'swallow') },
    { name: 'restarted in an orderly way', inject: () => service.restart(), end: () => Promise.resolve(), holdMs: 0 },
  ]
}

async function startNodes(
  place: NodePlace,
  options: readonly ServerOptions[],
  end: () => Promise<unknown>,
): Promise<TestSystem> {
  const nodes: TestNode[] = []
  for (const own of options) {
    const all = { ...NODE_OPTIONS, ...own }
    nodes.push(place === 'in-process' ? new NodeInProcess(all) : new NodeProcess(all, await freePort()))
  }
  try {
    await Promise.all(nodes.map((node) => node.start()))
  } catch (error) {
    await stopAll(nodes, end)
    throw error
  }
  return { nodes, faults: [], stop: () => stopAll(nodes, end) }
}

function freshNamespace(): string {
  return `history-${randomBytes(6).toString('hex')}`
}
