import { randomBytes } from 'node:crypto'
import { createNatsBroker } from '../../src/brokers/nats-broker.js'
import { historyOf } from '../../src/conformance/broker/history-of.js'
import { type BrokerFault, brokerFaultSuite } from '../../src/conformance/broker-fault-suite.js'
import { type FaultProxy, startFaultProxy, startNats } from '../../src/services/index.js'

const NODE_COUNT = 3
/** A node that hears nothing has lost its broker after twice that. */
const HEARTBEAT_MS = 300
/** Long enough that a half-open link is found by its silence, and not by the proxy that closes it. */
const HALF_OPEN_MS = 900

brokerFaultSuite(
  'nats',
  async () => {
    const server = await startNats({ isPrivate: true })
    const proxies: FaultProxy[] = []
    for (let index = 0; index < NODE_COUNT; index++) proxies.push(await startFaultProxy(server))
    const [first] = proxies
    const each = (of: readonly FaultProxy[], run: (proxy: FaultProxy) => Promise<void>) => async () => {
      await Promise.all(of.map(run))
    }
    const some = first === undefined ? [] : [first]
    const healed = { end: each(proxies, (proxy) => proxy.heal()) }
    const faults: BrokerFault[] = [
      { name: 'killed and restarted', inject: () => server.kill(), end: () => server.restart() },
      { name: 'one node cut', inject: each(some, (proxy) => proxy.cut()), ...healed },
      { name: 'one node half-open', inject: each(some, (proxy) => proxy.swallow()), ...healed, holdMs: HALF_OPEN_MS },
      { name: 'all nodes cut', inject: each(proxies, (proxy) => proxy.cut()), ...healed },
      {
        name: 'all nodes half-open',
        inject: each(proxies, (proxy) => proxy.swallow()),
        ...healed,
        holdMs: HALF_OPEN_MS,
      },
    ]
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
          ...historyOf(),
          maxPayloadBytes: 262_144,
        }),
      faults,
      end: async () => {
        await Promise.all(proxies.map((proxy) => proxy.stop()))
        await server.stop()
      },
    }
  },
  { faultCount: 25, nodeCount: NODE_COUNT },
)
