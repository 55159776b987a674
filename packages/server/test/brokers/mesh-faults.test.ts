import { beforeAll } from 'vitest'
import { type BrokerFaultSystem, brokerFaultSuite, historyOf } from 'webmq-conformance'
import { type FaultProxy, freePort, obtainToxiproxy, startFaultProxy } from 'webmq-services'
import { MeshBroker } from '../../src/adapters/brokers/mesh/broker.js'
import type { HistoryOptions } from '../../src/kernel/ports/history-rules.js'
import { faultCount } from './fault-count.js'

const BUILD_TIMEOUT_MS = 600_000
/** A lost link has this long to come back. */
const RELINK_MS = 400
/** After this a link is given up: messages are missed, and a gap is told. */
const BEYOND_RELINK_MS = 900
const HEARTBEAT_MS = 200
/** After this a half-open link is lost. */
const SILENCE_MS = 2 * HEARTBEAT_MS
const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined }

beforeAll(async () => {
  await obtainToxiproxy()
}, BUILD_TIMEOUT_MS)

// Links can only be made in one direction, and so every fault of a proxy is one of a link.
brokerFaultSuite('mesh', () => createSystem(false, historyOf()), { ...faultCount(24) })
// All dial all: while one way is broken the other one makes a new link, and it has to be agreed which one counts.
brokerFaultSuite('mesh, where all dial all', () => createSystem(true, historyOf()), { ...faultCount(12) })
brokerFaultSuite('mesh with history', () => createSystem(false, historyOf('load.#=100000')), { ...faultCount(12) })

/** Three nodes; every connection between them goes through a proxy of the one that is dialled by the other. */
async function createSystem(isBothWays: boolean, history: HistoryOptions): Promise<BrokerFaultSystem> {
  const ports = [await freePort(), await freePort(), await freePort()]
  const proxyTo = (index: number) => startFaultProxy({ url: `mesh://127.0.0.1:${ports[index]}` })
  const links = { '1-0': await proxyTo(0), '2-0': await proxyTo(0), '2-1': await proxyTo(1) }
  const back = isBothWays ? { '0-1': await proxyTo(1), '0-2': await proxyTo(2), '1-2': await proxyTo(2) } : {}
  const proxies: Partial<Record<string, FaultProxy>> = { ...links, ...back }
  const peersOf = (index: number): FaultProxy[] => [0, 1, 2].flatMap((other) => proxies[`${index}-${other}`] ?? [])
  const createNode = (index: number): MeshBroker =>
    new MeshBroker({
      listen: { host: '127.0.0.1', port: ports[index] ?? 0 },
      peers: peersOf(index).map(({ host, port }) => ({ host, port })),
      secret: 'shared by the nodes of this test',
      brokerNamespace: 'test',
      brokerTimeoutMs: 5_000,
      brokerStartTimeoutMs: 5_000,
      brokerHeartbeatMs: HEARTBEAT_MS,
      brokerMaxPendingBytes: 16 * 1_048_576,
      maxPayloadBytes: 262_144,
      dedupeWindowMs: 60_000,
      dedupeMaxIds: 1_000,
      ...history,
      logger: SILENT,
      relinkMs: RELINK_MS,
    })
  const all: FaultProxy[] = [...Object.values(links), ...Object.values(back)]
  const ofNode2 = Object.entries(proxies).flatMap(([way, proxy]) => (way.includes('2') && proxy ? [proxy] : []))
  const heal = async () => {
    await Promise.all(all.map((proxy) => proxy.heal()))
  }
  return {
    createNode,
    faults: [
      { name: 'one link cut for a moment', inject: () => links['1-0'].cut(), end: heal },
      { name: 'one link cut for long', inject: () => links['2-1'].cut(), end: heal, holdMs: BEYOND_RELINK_MS },
      { name: 'one link half-open for a moment', inject: () => links['2-0'].swallow(), end: heal },
      {
        name: 'one link half-open for long',
        inject: () => links['1-0'].swallow(),
        end: heal,
        holdMs: BEYOND_RELINK_MS + SILENCE_MS,
      },
      { name: 'one node cut off', inject: () => cutAll(ofNode2), end: heal, holdMs: BEYOND_RELINK_MS },
      { name: 'all links cut for a moment', inject: () => cutAll(all), end: heal, holdMs: 50 },
    ],
    async end() {
      await Promise.all(all.map((proxy) => proxy.stop()))
    },
  }
}

async function cutAll(proxies: readonly FaultProxy[]): Promise<void> {
  await Promise.all(proxies.map((proxy) => proxy.cut()))
}
