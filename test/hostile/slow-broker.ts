import { startBroker } from '../../packages/bench/src/brokers/running-broker.js'
import { ClientThreads } from '../../packages/bench/src/generator/client-threads.js'
import type { NetworkCommand, NetworkEvent } from '../../packages/bench/src/scenarios/overload/messages.js'

/** A thread needs JavaScript. */
const NETWORK = new URL('../../packages/bench/dist/scenarios/overload/slow-network.js', import.meta.url)
const START_TIMEOUT_MS = 30_000
/** Room for the honest load many times, and for a sixth of the attack on a machine with nothing else to do. */
const BYTES_PER_SECOND = 400_000

/** A Redis behind a network that is too slow for hostile publishers. */
export async function startSlowBroker() {
  const redis = await startBroker({ kind: 'redis' }, 1)
  const { broker, brokerNamespace } = redis.nodeOptions(0)
  const address = new URL(broker)
  const data = { brokerPort: Number(address.port), bytesPerSecond: BYTES_PER_SECOND }
  const network = new ClientThreads<NetworkCommand, NetworkEvent>(NETWORK, [data])
  const stop = async () => {
    await network.stop()
    await redis.stop()
  }
  const [ready] = await network.next('ready', START_TIMEOUT_MS).catch(async (error: unknown) => {
    await stop()
    throw error
  })
  address.port = String(ready?.port)
  return { settings: { broker: address.href, brokerNamespace }, [Symbol.asyncDispose]: stop }
}
