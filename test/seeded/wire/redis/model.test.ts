import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { createRedisBroker } from 'webmq-broker-redis'
import { brokerSuite, historyOf } from '../../../../packages/conformance/src/index.js'
import { OPTIONS } from '../../../../packages/server/test/brokers/redis-node.js'
import { serveWire } from '../serve.js'
import { ModelRedis } from './broker.js'

const CAPABILITIES = {
  history: false,
  retained: false,
  ordered: true,
  sharedLog: false,
  confirms: true,
  queueGroups: true,
  durable: false,
  manyNodes: true,
}

const redis = new ModelRedis({ random: Math.random })
let url = ''
let service: Awaited<ReturnType<typeof serveWire>>

beforeAll(async () => {
  service = await serveWire(redis)
  url = `redis://127.0.0.1:${service.port}`
})
afterAll(() => service.close())

/** Connections of nodes, and what is subscribed under a namespace. */
async function residueOf(namespace: string): Promise<string[]> {
  const sessions = [...redis.sessions]
  const names = sessions.flatMap(({ channels, globs }) => [...channels, ...globs.keys()])
  return [...names.filter((name) => name.startsWith(namespace)), ...sessions.map(({ description }) => description)]
}

function suite(name: string, given: ReturnType<typeof historyOf>, capabilities: typeof CAPABILITIES): void {
  brokerSuite(
    name,
    () => {
      const brokerNamespace = `test-${randomBytes(6).toString('hex')}`
      return {
        createNode: (history = given) => createRedisBroker({ ...OPTIONS, ...history, broker: url, brokerNamespace }),
        residue: () => residueOf(brokerNamespace),
      }
    },
    capabilities,
  )
}

suite('the model of a redis', historyOf(), CAPABILITIES)
suite('the model of a redis with history', historyOf('#=1000'), {
  ...CAPABILITIES,
  history: true,
  sharedLog: true,
  durable: true,
})
