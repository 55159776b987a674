import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll } from 'vitest'
import { createRedisBroker } from 'webmq-broker-redis'
import { brokerSuite, historyOf } from 'webmq-conformance'
import { sharedService } from 'webmq-services'
import type { AddressedBrokerOptions } from '../../src/adapters/brokers/remote/options.js'
import type { BrokerCapabilities } from '../../src/kernel/ports/broker.js'

const CAPABILITIES: BrokerCapabilities = {
  history: false,
  retained: false,
  ordered: true,
  sharedLog: false,
  confirms: true,
  queueGroups: true,
  durable: false,
  manyNodes: true,
}
const OPTIONS: Omit<AddressedBrokerOptions, 'broker' | 'brokerNamespace'> = {
  brokerTimeoutMs: 5_000,
  brokerStartTimeoutMs: 5_000,
  brokerHeartbeatMs: 1_000,
  brokerMaxPendingBytes: 64 * 1_048_576,
  dedupeWindowMs: 60_000,
  dedupeMaxIds: 1_000,
  maxPayloadBytes: 1_048_576,
  ...historyOf(),
}

let url = ''
let plain: Redis

beforeAll(async () => {
  url = (await sharedService('redis')).url
  plain = new Redis(url)
})
afterAll(async () => {
  await plain.quit()
})

function freshNamespace(): string {
  return `test-${randomBytes(6).toString('hex')}`
}

/** Our connections, and what is subscribed under a namespace. */
async function residueOf(redis: Redis, namespace: string): Promise<string[]> {
  const clients = String(await redis.client('LIST'))
  return [
    ...clients.split('\n').filter((client) => /name=webmq-/.test(client) && client.includes(namespace)),
    ...((await redis.pubsub('CHANNELS', `${namespace}*`)) as string[]),
  ]
}

brokerSuite(
  'redis',
  () => {
    const brokerNamespace = freshNamespace()
    return {
      createNode: () => createRedisBroker({ ...OPTIONS, broker: url, brokerNamespace }),
      residue: () => residueOf(plain, brokerNamespace),
    }
  },
  CAPABILITIES,
)

brokerSuite(
  'redis with history',
  () => {
    const brokerNamespace = freshNamespace()
    return {
      createNode: (history = historyOf('#=1000')) =>
        createRedisBroker({ ...OPTIONS, ...history, broker: url, brokerNamespace }),
      residue: () => residueOf(plain, brokerNamespace),
    }
  },
  { ...CAPABILITIES, history: true, sharedLog: true, durable: true },
)
