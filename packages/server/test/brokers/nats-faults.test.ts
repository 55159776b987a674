import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { connect } from '@nats-io/transport-node'
import { createNatsBroker } from 'webmq-broker-nats'
import { type BrokerFault, type BrokerFaultSystem, brokerFaultSuite, historyOf, retaining } from 'webmq-conformance'
import type { Service } from 'webmq-services'
import { type FaultProxy, startFaultProxy, startNats } from 'webmq-services'
import { hasHistory } from '../../src/adapters/brokers/log/history-log.js'
import type { HistoryOptions } from '../../src/kernel/ports/history-rules.js'
import { faultCount } from './fault-count.js'

const NODE_COUNT = 3
/** A node that hears nothing has lost its broker after twice that. */
const HEARTBEAT_MS = 300
/** Long enough that a half-open link is found by its silence, and not by the proxy that closes it. */
const HALF_OPEN_MS = 900

/** Nodes on a server of their own, each behind a proxy, and what goes wrong between them. */
function systemWith(history: HistoryOptions, faultsOf: (place: FaultPlace) => readonly BrokerFault[]) {
  return async (): Promise<BrokerFaultSystem> => {
    const folder = await mkdtemp(path.join(tmpdir(), 'webmq-nats-faults-'))
    const pidFile = path.join(folder, 'pid')
    const storeFolder = path.join(folder, 'store')
    const jetStream = hasHistory(history) ? `\njetstream { store_dir: "${storeFolder}" }` : ''
    const server = await startNats({ config: `pid_file: "${pidFile}"${jetStream}` })
    const signal = async (name: NodeJS.Signals) => {
      process.kill(Number(await readFile(pidFile, 'utf8')), name)
    }
    const proxies: FaultProxy[] = []
    for (let index = 0; index < NODE_COUNT; index++) proxies.push(await startFaultProxy(server))
    const brokerNamespace = `faults-${randomBytes(6).toString('hex')}`
    return {
      createNode: (index) =>
        createNatsBroker({
          broker: proxies[index]?.url ?? server.url,
          brokerNamespace,
          brokerTimeoutMs: 5_000,
          brokerStartTimeoutMs: 5_000,
          brokerHeartbeatMs: HEARTBEAT_MS,
          brokerMaxPendingBytes: 64 * 1024 ** 2,
          dedupeWindowMs: 60_000,
          dedupeMaxIds: 1_000,
          ...history,
          maxPayloadBytes: 262_144,
        }),
      faults: faultsOf({ server, signal, storeFolder, proxies, brokerNamespace }),
      end: async () => {
        await Promise.all(proxies.map((proxy) => proxy.stop()))
        await server.stop()
        await rm(folder, { recursive: true })
      },
    }
  }
}

interface FaultPlace {
  readonly server: Service
  /** Sends one to the server. */
  readonly signal: (name: NodeJS.Signals) => Promise<void>
  readonly storeFolder: string
  readonly proxies: readonly FaultProxy[]
  readonly brokerNamespace: string
}

/** Faults that a log survives. */
function outages({ server, proxies }: FaultPlace): BrokerFault[] {
  const [first] = proxies
  const each = (of: readonly FaultProxy[], run: (proxy: FaultProxy) => Promise<void>) => async () => {
    await Promise.all(of.map(run))
  }
  const some = first === undefined ? [] : [first]
  const healed = { end: each(proxies, (proxy) => proxy.heal()) }
  return [
    { name: 'killed and restarted', inject: () => server.kill(), end: () => server.restart() },
    { name: 'one node cut', inject: each(some, (proxy) => proxy.cut()), ...healed },
    { name: 'one node half-open', inject: each(some, (proxy) => proxy.swallow()), ...healed, holdMs: HALF_OPEN_MS },
    { name: 'all nodes cut', inject: each(proxies, (proxy) => proxy.cut()), ...healed },
    { name: 'all nodes half-open', inject: each(proxies, (proxy) => proxy.swallow()), ...healed, holdMs: HALF_OPEN_MS },
  ]
}

/** Faults that a log does not survive. */
function losses({ server, storeFolder, brokerNamespace }: FaultPlace): BrokerFault[] {
  const name = `${brokerNamespace}-log`
  const nothing = () => Promise.resolve()
  return [
    { name: 'stream deleted', inject: () => askJetStream(server, `STREAM.DELETE.${name}`), end: nothing },
    {
      name: 'killed, and restarted without its store',
      inject: async () => {
        await server.kill()
        await rm(storeFolder, { recursive: true })
      },
      end: () => server.restart(),
    },
  ]
}

async function askJetStream({ url }: Service, name: string): Promise<void> {
  const client = await connect({ servers: url })
  await client.request(`$JS.API.${name}`)
  await client.close()
}

const NO_HISTORY = historyOf()
const ALL_LOGGED = historyOf('#=1000')
const SOME_LOGGED = historyOf('load.1=1000', 'load.2.#=1000')

brokerFaultSuite('nats', systemWith(NO_HISTORY, outages), { ...faultCount(25), nodeCount: NODE_COUNT })
brokerFaultSuite(
  'nats, all logged',
  systemWith(retaining({ ...ALL_LOGGED, historyMaxMessages: 100_000 }, '#'), (place) => [
    ...outages(place),
    {
      name: 'stands still',
      inject: () => place.signal('SIGSTOP'),
      end: () => place.signal('SIGCONT'),
      holdMs: HALF_OPEN_MS,
    },
  ]),
  { ...faultCount(24), nodeCount: NODE_COUNT, isLogKept: true },
)
brokerFaultSuite('nats, some logged', systemWith(SOME_LOGGED, outages), { ...faultCount(10), nodeCount: NODE_COUNT })
brokerFaultSuite('nats, log lost', systemWith(ALL_LOGGED, losses), { ...faultCount(10), nodeCount: NODE_COUNT })
