import { once } from 'node:events'
import { createServer } from 'webmq-server'
import { Closer } from './gateway/closer'
import { createApi } from './gateway/http'
import { Keys } from './gateway/keys'
import { Refusal } from './gateway/refusal'
import { Relay } from './gateway/relay'
import { connect, Store } from './gateway/store'
import { systemOptions } from './gateway/system'

const REDIS_URL = process.env.AUCTION_REDIS_URL ?? 'redis://127.0.0.1:6379'
const PORT = Number(process.env.GATEWAY_PORT ?? 8081)
/** Bids are decided while the broker is away; the gateway waits for it. */
const BROKER_WAIT_MS = 24 * 3_600_000

const system = systemOptions(process.env)
const keys = new Keys(system.brokerNamespace)
const redis = connect(REDIS_URL)
const store = new Store(redis, keys)
const closer = new Closer(store)

// A node that only publishes: nobody may connect.
const node = createServer({
  ...system,
  port: 0,
  brokerStartTimeoutMs: BROKER_WAIT_MS,
  hooks: { connect: () => ({ refuse: { message: 'this node has no listeners' } }) },
})
const relay = new Relay(connect(REDIS_URL), keys, node)

const api = createApi({
  store,
  async assertHealthy() {
    const waiting = await store.waitingCount()
    if (!isStarted || relay.error || closer.error) throw new Refusal(503, 'not-ready', { waiting })
    return { status: 'ok', waiting }
  },
})

let isStarted = false
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, stop)
await new Promise((resolve) => redis.once('ready', resolve))
closer.start()
api.listen(PORT, '127.0.0.1')
await once(api, 'listening')
console.log(`The gateway listens on port ${PORT}.`)
await node.start()
relay.start()
isStarted = true

async function stop(): Promise<void> {
  if (isStarted) {
    const closed = once(api, 'close')
    api.close()
    await closed
    await Promise.all([closer.stop(), relay.stop()])
    await node.stop({ drainMs: 0, delayMs: 0 })
  }
  process.exit()
}
